# SPDX-License-Identifier: Apache-2.0
"""What the scripts that make random cases share: numbers of a seed, and the table of cases."""

import math
import os

import torch

from make_transformer import write_safetensors


class Draws:
    """Random numbers of one seed, in f64."""

    def __init__(self, seed):
        print(f"seed {seed}")
        self.gen = torch.Generator().manual_seed(seed)

    def uniform(self, low, high):
        return low + (high - low) * torch.rand((), generator=self.gen, dtype=torch.float64).item()

    def log_uniform(self, low, high):
        return math.exp(self.uniform(math.log(low), math.log(high)))

    def integer(self, low, high):
        return int(torch.randint(low, high + 1, (), generator=self.gen).item())

    def normal(self, *shape):
        return torch.randn(shape, generator=self.gen, dtype=torch.float64)


def write_cases(name, columns, rows, tensors):
    """Writes tests/golden/<name>: `table` has a row per case with a number per column, and every
    other tensor the elements of all cases one after another."""
    out = {"table": torch.tensor([[row[c] for c in columns] for row in rows], dtype=torch.float64)}
    for key, parts in tensors.items():
        out[key] = torch.cat([part.detach().double().reshape(-1) for part in parts])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    write_safetensors(path, out)
    print(f"{len(rows)} cases, {os.path.getsize(path)} bytes")
