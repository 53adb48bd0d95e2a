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

import torch
from torch.nn import functional

from random_cases import Draws, write_cases

INDICES, PROBABILITIES, SIGMOID = range(3)
COUNTS = {INDICES: 60, PROBABILITIES: 50, SIGMOID: 40}
COLUMNS = ["kind", "rank", "size0", "size1", "size2", "classes", "smoothing", "z_loss"]
draw = Draws(30)


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
    rank = draw.integer(1, 3)
    shape = [draw.integer(1, [40, 12, 7][rank - 1]) for _ in range(rank)]
    c.update(kind=kind, rank=rank, classes=draw.integer(0, rank - 1))
    for d, size in enumerate(shape):
        c[f"size{d}"] = size
    if kind != SIGMOID:
        c.update(smoothing=draw.integer(0, 1) * draw.uniform(0, 1),
                 z_loss=draw.integer(0, 1) * draw.log_uniform(1e-4, 1))
    rest = [size for d, size in enumerate(shape) if d != c["classes"]]
    logits = (draw.normal(*shape) * draw.log_uniform(0.1, 30)).requires_grad_()
    if kind == INDICES:
        targets = torch.randint(0, shape[c["classes"]], rest, generator=draw.gen)
    elif draw.integer(0, 1):  # those of a distribution, or any numbers
        targets = torch.softmax(draw.normal(*shape), c["classes"]).requires_grad_()
    else:
        targets = draw.normal(*shape).requires_grad_()
    if kind == SIGMOID:
        loss = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    else:
        loss = softmax_loss(c, logits, targets).reshape(rest)
    weights = draw.normal(*loss.shape)
    (loss * weights).sum().backward()
    by_targets = torch.zeros(targets.shape) if kind == INDICES else targets.grad
    return c, [t.detach().double() for t in (logits, targets, weights, loss, logits.grad, by_targets)]


def main():
    cases = [make_case(kind) for kind, n in COUNTS.items() for _ in range(n)]
    names = ["logits", "targets", "weights", "loss", "logits_gradient", "targets_gradient"]
    write_cases("losses.safetensors", COLUMNS, [c for c, _ in cases],
                {name: [tensors[i] for _, tensors in cases] for i, name in enumerate(names)})


if __name__ == "__main__":
    main()
