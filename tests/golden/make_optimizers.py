#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes optimizers.safetensors beside this file: 170 random cases of optimisers in f64, by PyTorch
(2.5 or later). Run by hand when an optimiser changes.

torch.optim has SGD, Adam, AdamW and a part of Adafactor. What it lacks (Adam without correction, most
options of Adafactor) is written out here from its definition, which is compared with torch.optim
wherever both apply. Nothing is shared with the C code.

  table      one row per case, see COLUMNS
  weights    all cases one after another, before the first step
  gradients  likewise, a gradient per step
  after      the weights behind the last step"""

import math

import torch

from random_cases import Draws, write_cases

SGD, MOMENTUM, NESTEROV, ADAM, ADAMW, ADAFACTOR = range(6)
COUNTS = {SGD: 12, MOMENTUM: 20, NESTEROV: 20, ADAM: 30, ADAMW: 28, ADAFACTOR: 60}
COLUMNS = ["kind", "steps", "rank", "size0", "size1", "size2", "size3", "rate", "momentum", "beta1",
           "beta2", "epsilon", "uncorrected", "weight_decay", "scale", "factored", "decay_adam",
           "exponent", "decay_beta2", "offset", "mean", "threshold", "epsilon1", "epsilon2",
           "min_dim", "stacked"]
draw = Draws(20)


# ---- definitions ----

def adam(c, w, gradients):
    m, v = torch.zeros_like(w), torch.zeros_like(w)
    for t, g in enumerate(gradients, 1):
        m = c["beta1"] * m + (1 - c["beta1"]) * g
        v = c["beta2"] * v + (1 - c["beta2"]) * g * g
        one, two = 1.0, 1.0
        if not c["uncorrected"]:
            one, two = 1 - c["beta1"] ** t, 1 - c["beta2"] ** t
        update = (m / one) / ((v / two).sqrt() + c["epsilon"])
        if c["kind"] == ADAMW and w.dim() >= 2:
            update = update + c["weight_decay"] * w
        w = w - c["rate"] * update
    return w


def rms(x, dims):
    return x.square().mean(dim=dims, keepdim=True).sqrt() if dims else x.abs()


def adafactor(c, w, gradients):
    free = [d for d in range(w.dim()) if not (c["stacked"] >> d) & 1]
    order = sorted(free, key=lambda d: -w.shape[d])
    factored = c["factored"] and len(order) >= 2 and w.shape[order[1]] >= c["min_dim"]
    vr = vc = v = m = 0.0
    for t, g in enumerate(gradients, 1):
        t = max(t - c["offset"], 1)
        b = c["decay_beta2"]
        decay = b * (1 - b ** (t - 1)) / (1 - b ** t) if c["decay_adam"] else 1 - t ** -c["exponent"]
        square = g * g + c["epsilon1"]
        if factored:
            vr = decay * vr + (1 - decay) * square.mean(dim=order[0], keepdim=True)
            vc = decay * vc + (1 - decay) * square.mean(dim=order[1], keepdim=True)
            u = g / (vr / vr.mean(dim=order[1], keepdim=True)).sqrt() / vc.sqrt()
        else:
            v = decay * v + (1 - decay) * square
            u = g / v.sqrt()
        if c["threshold"] > 0:
            u = u / max(1.0, u.square().mean().sqrt().item() / c["threshold"])
        u = u * c["rate"]
        if c["scale"]:
            u = u * rms(w, free).clamp(min=c["epsilon2"])
        if c["mean"] > 0:
            m = c["mean"] * m + (1 - c["mean"]) * u
            u = m
        w = w - u
    return w


# ---- PyTorch ----

def by_torch(c, w, gradients):
    """The weights by torch.optim, or None where it has no such optimiser."""
    p = torch.nn.Parameter(w.clone())
    kind, rate = c["kind"], c["rate"]
    if kind == SGD:
        o = torch.optim.SGD([p], lr=rate)
    elif kind in (MOMENTUM, NESTEROV):
        o = torch.optim.SGD([p], lr=rate, momentum=c["momentum"], nesterov=kind == NESTEROV)
    elif kind in (ADAM, ADAMW):
        if c["uncorrected"]:
            return None
        decay = c["weight_decay"] if kind == ADAMW and w.dim() >= 2 else 0
        o = torch.optim.AdamW([p], lr=rate, betas=(c["beta1"], c["beta2"]), eps=c["epsilon"],
                              weight_decay=decay)
    else:
        plain = (c["scale"] and not c["decay_adam"] and c["offset"] == 0 and c["mean"] == 0 and
                 c["threshold"] >= 1 and c["stacked"] == 0 and c["epsilon1"] < 1e-20 and
                 rate * math.sqrt(len(gradients)) <= 1)
        factored = w.dim() == 2 and c["factored"] and min(w.shape) >= c["min_dim"]
        if not plain or not (w.dim() == 1 or factored):
            return None
        o = torch.optim.Adafactor([p], lr=rate, beta2_decay=-c["exponent"],
                                  eps=(1e-15, c["epsilon2"]), d=c["threshold"], weight_decay=0)
    for g in gradients:
        p.grad = g.clone()
        o.step()
    return p.detach()


def solve(c, w, gradients):
    theirs = by_torch(c, w, gradients)
    ours = {ADAM: adam, ADAMW: adam, ADAFACTOR: adafactor}.get(c["kind"])
    if ours is None:
        return theirs
    mine = ours(c, w, gradients)
    if theirs is None:
        return mine
    assert torch.allclose(mine, theirs, rtol=1e-12, atol=1e-12), c
    return theirs


# ---- cases ----

def options(kind):
    c = dict.fromkeys(COLUMNS, 0)
    c.update(kind=kind, steps=draw.integer(1, 5), rate=draw.log_uniform(1e-3, 0.3))
    if kind in (MOMENTUM, NESTEROV):
        c["momentum"] = draw.uniform(0.1, 0.99)
    if kind in (ADAM, ADAMW):
        c.update(beta1=draw.uniform(0, 0.99), beta2=draw.uniform(0.5, 0.9999),
                 epsilon=draw.log_uniform(1e-8, 1e-2),
                 uncorrected=draw.integer(0, 1) * draw.integer(0, 1))
    if kind == ADAMW:
        c["weight_decay"] = draw.log_uniform(1e-3, 0.5)
    if kind == ADAFACTOR:
        c.update(scale=1, factored=1, exponent=0.8, threshold=1.0, epsilon1=1e-30, epsilon2=1e-3,
                 min_dim=2, decay_beta2=0.999)
        if draw.integer(0, 3) > 0:  # any of the options
            c.update(scale=draw.integer(0, 1), factored=int(draw.integer(0, 3) > 0),
                     decay_adam=draw.integer(0, 1), exponent=draw.uniform(0.3, 1.2),
                     decay_beta2=draw.uniform(0.5, 0.999),
                     offset=draw.integer(0, 1) * draw.integer(0, 3),
                     mean=draw.integer(0, 1) * draw.uniform(0.1, 0.9),
                     threshold=draw.integer(0, 2) * 0.4,
                     epsilon1=draw.log_uniform(1e-30, 1e-3), epsilon2=draw.log_uniform(1e-3, 1),
                     min_dim=draw.integer(1, 4))
    return c


def make_case(kind, plain_shape):
    c = options(kind)
    rank = draw.integer(1, 2) if plain_shape else draw.integer(0, 4)
    shape = [draw.integer(1, [30, 30, 9, 5, 4][rank]) for _ in range(rank)]
    c["rank"] = rank
    for d, size in enumerate(shape):
        c[f"size{d}"] = size
    if kind == ADAFACTOR and draw.integer(0, 2) == 0 and rank > 0 and not plain_shape:
        c["stacked"] = draw.integer(1, 2 ** rank - 1)
    w = draw.normal(*shape) * draw.log_uniform(1e-3, 3)
    gradients = draw.normal(c["steps"], *shape) * draw.log_uniform(1e-3, 3)
    return c, w, gradients, solve(c, w, gradients)


def main():
    cases = [make_case(kind, k % 2 == 0) for kind, n in COUNTS.items() for k in range(n)]
    write_cases("optimizers.safetensors", COLUMNS, [case[0] for case in cases],
                {name: [case[i] for case in cases]
                 for i, name in enumerate(["weights", "gradients", "after"], 1)})
    known = sum(by_torch(*case[:3]) is not None for case in cases)
    print(f"{known} by torch.optim")


if __name__ == "__main__":
    main()
