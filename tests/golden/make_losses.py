#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes losses.safetensors beside this file: 150 random cases of losses with their gradients in
f64, by PyTorch. Run by hand when a loss changes. Nothing is shared with the C code.

Every case has logits of up to three dims, one of them the classes, targets, and weights for the
elements of the loss. All cases stand one after another:

  table             one row per case, see COLUMNS
  logits, targets   targets are indices of classes, or as many numbers as logits
  weights, loss     of the shape of the loss
  logits_gradient   of the sum of weights times loss
  targets_gradient  likewise; zeros for indices"""

import math
import os

import torch
from torch.nn import functional

from make_transformer import write_safetensors

INDICES, PROBABILITIES, SIGMOID = range(3)
COUNTS = {INDICES: 60, PROBABILITIES: 50, SIGMOID: 40}
COLUMNS = ["kind", "rank", "size0", "size1", "size2", "classes", "smoothing", "z_loss"]
gen = torch.Generator().manual_seed(30)


def uniform(low, high):
    return low + (high - low) * torch.rand((), generator=gen, dtype=torch.float64).item()


def log_uniform(low, high):
    return math.exp(uniform(math.log(low), math.log(high)))


def integer(low, high):
    return int(torch.randint(low, high + 1, (), generator=gen).item())


def normal(shape):
    return torch.randn(shape, generator=gen, dtype=torch.float64)


def softmax_loss(c, logits, targets):
    x = logits.movedim(c["classes"], -1).reshape(-1, c[f"size{c['classes']}"])
    if c["kind"] == PROBABILITIES:
        t = targets.movedim(c["classes"], -1).reshape(x.shape)
    else:
        t = targets.reshape(-1)
    loss = functional.cross_entropy(x, t, reduction="none", label_smoothing=c["smoothing"])
    return loss + c["z_loss"] * torch.logsumexp(x, -1).square()


def make_case(kind):
    c = dict.fromkeys(COLUMNS, 0)
    rank = integer(1, 3)
    shape = [integer(1, [40, 12, 7][rank - 1]) for _ in range(rank)]
    c.update(kind=kind, rank=rank, classes=integer(0, rank - 1))
    for d, size in enumerate(shape):
        c[f"size{d}"] = size
    if kind != SIGMOID:
        c.update(smoothing=integer(0, 1) * uniform(0, 1), z_loss=integer(0, 1) * log_uniform(1e-4, 1))
    rest = [size for d, size in enumerate(shape) if d != c["classes"]]
    logits = (normal(shape) * log_uniform(0.1, 30)).requires_grad_()
    if kind == INDICES:
        targets = torch.randint(0, shape[c["classes"]], rest, generator=gen)
    elif integer(0, 1):  # those of a distribution, or any numbers
        targets = torch.softmax(normal(shape), c["classes"]).requires_grad_()
    else:
        targets = normal(shape).requires_grad_()
    if kind == SIGMOID:
        loss = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    else:
        loss = softmax_loss(c, logits, targets).reshape(rest)
    weights = normal(loss.shape)
    (loss * weights).sum().backward()
    by_targets = torch.zeros(targets.shape) if kind == INDICES else targets.grad
    return c, [t.detach().double() for t in (logits, targets, weights, loss, logits.grad, by_targets)]


def main():
    cases = [make_case(kind) for kind, n in COUNTS.items() for _ in range(n)]
    out = {"table": torch.tensor([[c[name] for name in COLUMNS] for c, _ in cases],
                                 dtype=torch.float64)}
    for i, name in enumerate(["logits", "targets", "weights", "loss", "logits_gradient",
                              "targets_gradient"]):
        out[name] = torch.cat([tensors[i].reshape(-1) for _, tensors in cases])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "losses.safetensors")
    write_safetensors(path, out)
    print(f"{len(cases)} cases, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
