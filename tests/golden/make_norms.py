#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes norms.safetensors beside this file: 200 random cases of norms with their gradients in f64,
by PyTorch (2.4 or later). Run by hand when a norm changes. Nothing is shared with the C code.

Every case has a tensor of up to four dims and a layout. `parts` says which dims the scale has:
those that a layer or RMS norm works along, the channels of a batch norm. `affine` is 1 with a scale
and 2 with a bias, added up. All cases stand one after another:

  table                one row per case, see COLUMNS
  x, weights, y        weights are for the elements of y
  x_gradient           of the sum of weights times y, likewise scale_gradient and bias_gradient
  scale, bias          of the shape of the parts, whether they are used or not
  mean, variance       moving averages before, of batch norms (zeros for others)
  mean_after, variance_after  and after the step"""

import torch
from torch.nn import functional

from random_cases import Draws, write_cases

LAYER, RMS, BATCH, INFERENCE = range(4)
COUNTS = {LAYER: 70, RMS: 50, BATCH: 50, INFERENCE: 30}
# mesh0 .. are the sizes of three mesh axes, cut0 .. the dim that each of them cuts (4: none). With
# `backward` the parts stand in the opposite order in the scale. `largest` is the largest |x| over
# the smallest deviation, `steepest` one over the smallest deviation.
COLUMNS = ["kind", "rank", "size0", "size1", "size2", "size3", "parts", "backward", "affine",
           "epsilon", "momentum", "mesh0", "mesh1", "mesh2", "cut0", "cut1", "cut2", "largest",
           "steepest"]
TENSORS = ["x", "weights", "y", "x_gradient", "scale", "bias", "scale_gradient", "bias_gradient",
           "mean", "variance", "mean_after", "variance_after"]
draw = Draws(40)


def draw_case(kind):
    c = dict.fromkeys(COLUMNS, 0)
    rank = draw.integer(1, 4)
    sizes = [draw.integer(1, [60, 14, 7, 5][rank - 1]) for _ in range(rank)]
    if draw.integer(0, 2) == 0:
        sizes[draw.integer(0, rank - 1)] = 1
    c.update(kind=kind, rank=rank, parts=draw.integer(1, 2 ** rank - 1),
             backward=draw.integer(0, 1),
             affine=draw.integer(0, 3) if kind in (LAYER, RMS) else 3,
             epsilon=draw.log_uniform(1e-7, 0.1))
    for d, size in enumerate(sizes):
        c[f"size{d}"] = size
    if kind == BATCH:
        c["momentum"] = draw.uniform(0, 1) if draw.integer(0, 4) else draw.integer(0, 1)
    for a in range(3):
        c[f"mesh{a}"] = draw.integer(1, 4)
        c[f"cut{a}"] = draw.integer(0, rank)
        if c[f"cut{a}"] == rank:
            c[f"cut{a}"] = 4
    return c, sizes


def along_parts(kind, x, n, scale, bias, epsilon):
    """x [others parts..], n dims of parts."""
    if kind == LAYER:
        return functional.layer_norm(x, x.shape[-n:], scale, bias, epsilon)
    return functional.rms_norm(x, x.shape[-n:], scale, epsilon) + bias


def batch_norm(c, x, scale, bias, mean, variance):
    """x [others channels]: y and the moving averages after."""
    epsilon, momentum = c["epsilon"], c["momentum"]
    if c["kind"] == INFERENCE:
        y = functional.batch_norm(x, mean, variance, scale, bias, False, 0, epsilon)
        return y, mean, variance
    # PyTorch refuses a single value per channel, and its moving variance divides by n - 1.
    now, spread = x.mean(0), x.var(0, correction=0)
    y = (x - now) * (spread + epsilon).rsqrt() * scale + bias
    mean_after = momentum * mean + (1 - momentum) * now
    variance_after = momentum * variance + (1 - momentum) * spread
    n = x.shape[0]
    if n > 1:
        m, v = mean.clone(), variance.clone()
        theirs = functional.batch_norm(x, m, v, scale, bias, True, 1 - momentum, epsilon)
        same = momentum * variance + (v - momentum * variance) * (n - 1) / n
        assert torch.allclose(theirs, y, rtol=1e-9, atol=1e-9)
        assert torch.allclose(m, mean_after, rtol=1e-12, atol=1e-12)
        assert torch.allclose(same, variance_after, rtol=1e-12, atol=1e-12)
        y = theirs
    return y, mean_after.detach(), variance_after.detach()


def make_case(kind):
    c, sizes = draw_case(kind)
    parts = [d for d in range(c["rank"]) if c["parts"] >> d & 1]
    others = [d for d in range(c["rank"]) if d not in parts]
    if c["backward"]:
        parts = parts[::-1]
    shape = [sizes[d] for d in parts]
    x = draw.normal(*sizes) * draw.log_uniform(0.03, 30)
    if draw.integer(0, 1):
        x = x + draw.uniform(-10, 10)
    x.requires_grad_()
    weights, scale = draw.normal(*sizes), torch.ones(shape, dtype=torch.float64)
    bias, mean, variance = (torch.zeros(shape, dtype=torch.float64) for _ in range(3))
    if c["affine"] & 1:
        scale = draw.normal(*shape)
    if c["affine"] & 2:
        bias = draw.normal(*shape)
    if kind in (BATCH, INFERENCE):
        mean = draw.normal(*shape)
        variance = draw.normal(*shape).square()
    scale.requires_grad_()
    bias.requires_grad_()
    moved = x.permute(others + parts)
    mean_after, variance_after = mean, variance
    if kind in (LAYER, RMS):
        y = along_parts(kind, moved, len(parts), scale, bias, c["epsilon"])
        dims = list(range(len(others), c["rank"]))
        spread = moved.var(dims, correction=0) if kind == LAYER else moved.square().mean(dims)
    else:
        flat = moved.reshape(-1, scale.numel())
        y, mean_after, variance_after = batch_norm(c, flat, *(t.reshape(-1) for t in (
            scale, bias, mean, variance)))
        y = y.reshape(moved.shape)
        spread = variance if kind == INFERENCE else flat.var(0, correction=0)
    y = y.permute([(others + parts).index(d) for d in range(c["rank"])])
    (y * weights).sum().backward()
    c["steepest"] = (spread + c["epsilon"]).rsqrt().max().item()
    c["largest"] = max(x.abs().max().item(), mean.abs().max().item()) * c["steepest"]
    return c, [x, weights, y, x.grad, scale, bias, scale.grad, bias.grad, mean, variance,
               mean_after, variance_after]


def main():
    cases = [make_case(kind) for kind, n in COUNTS.items() for _ in range(n)]
    write_cases("norms.safetensors", COLUMNS, [c for c, _ in cases],
                {name: [tensors[i] for _, tensors in cases] for i, name in enumerate(TENSORS)})


if __name__ == "__main__":
    main()
