# SPDX-License-Identifier: Apache-2.0
"""Makes numpy.jsonl: random cases of operations with the values that numpy gives.

    python3 -m venv V && V/bin/pip install numpy && V/bin/python tests/golden/make_numpy.py [SEED]

A line is one case: the operation, its arguments, its operands (type, shape, seed) and the result.
Operands are not stored: element k of an operand is a function of its seed and k, which
tests/ops/test_numpy.c knows as well. SEED is 1 in the file that is checked in."""
import json
import os
import sys

import numpy as np

CASES = 2000
MASK = (1 << 64) - 1
NAMES = "abcdef"


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def unit(seed, k):
    """The k-th number in [0, 1) of a seed."""
    return (mix((seed * 1000003 + k) & MASK) >> 11) * 2.0**-53


class Case:
    """Draws the choices of one case and keeps its operands."""

    def __init__(self, seed):
        self.seed, self.draws, self.operands, self.args = seed, 0, [], {}
        self.size = {n: 1 + self.below(6) for n in NAMES}

    def below(self, n):
        self.draws += 1
        return int(unit(self.seed * 7919 + 17, self.draws) * n)

    def some(self, dims):
        return [d for d in dims if self.below(2)]

    def shuffled(self, dims):
        dims = list(dims)
        for i in range(len(dims) - 1, 0, -1):
            j = self.below(i + 1)
            dims[i], dims[j] = dims[j], dims[i]
        return dims

    def dims(self, least, most, names=NAMES):
        n = least + self.below(most - least + 1)
        return self.shuffled(names)[:n]

    def operand(self, kind, dims, low=0, high=0, size=None):
        """kind: real in [-1, 1), step (quarters, with ties), int in low..high, flag."""
        size = size or self.size
        shape = [[d, size[d]] for d in dims]
        seed = (self.seed * 64 + len(self.operands)) & MASK
        self.operands.append({"kind": kind, "shape": shape, "seed": seed, "low": low, "high": high})
        n = int(np.prod([size[d] for d in dims], dtype=np.int64))
        u = np.array([unit(seed, k) for k in range(n)])
        if kind == "real":
            x = u * 2 - 1
        elif kind == "step":
            x = np.floor(u * 17) / 4 - 2
        elif kind == "int":
            x = (low + np.floor(u * (high - low + 1))).astype(np.int64)
        else:
            x = u < 0.5
        return x.reshape([size[d] for d in dims])

    def along(self, dims):
        """One of the dims, noted as the argument `dim`, and its axis."""
        at = self.below(len(dims))
        self.args["dim"] = dims[at]
        return at, self.size[dims[at]]


def einsum(c):
    n = 1 + c.below(4)
    operands = [c.dims(0, 3) for _ in range(n)]
    union = sorted(set().union(*operands))
    out = c.shuffled(c.some(union))
    xs = [c.operand("real", d) for d in operands]
    text = ",".join("".join(d) for d in operands) + "->" + "".join(out)
    return out, np.einsum(text, *xs)


def reduction(c):
    dims = c.dims(1, 4)
    out = c.shuffled(c.some(dims))
    name = ["sum", "mean", "max", "min", "logsumexp", "all", "any"][c.below(7)]
    kind = {"all": "flag", "any": "flag", "max": "step", "min": "step"}.get(name, "real")
    x = c.operand(kind, dims)
    c.args["reduction"] = name
    axes = tuple(i for i, d in enumerate(dims) if d not in out)
    if name == "logsumexp":
        y = np.log(np.sum(np.exp(x), axis=axes))
    else:
        y = getattr(np, name)(x, axis=axes)
    rest = [d for d in dims if d in out]
    return out, np.transpose(y, [rest.index(d) for d in out])


def cumsum(c):
    dims = c.dims(1, 4)
    at, _ = c.along(dims)
    exclusive, reverse = c.below(2), c.below(2)
    c.args.update(exclusive=exclusive, reverse=reverse)
    x = c.operand(["real", "int"][c.below(2)], dims, -9, 9)
    x = np.flip(x, at) if reverse else x
    y = np.cumsum(x, axis=at) - (x if exclusive else 0)
    return dims, np.flip(y, at) if reverse else y


def gather(c):
    dims = c.dims(1, 3)
    at, n = c.along(dims)
    # Dims of the indices: new ones, and some of the table's, which are matched.
    free = [d for d in NAMES if d not in dims]
    where = c.dims(0, 2, free) + c.some([d for d in dims if d != dims[at]])
    table = c.operand(["real", "flag", "int"][c.below(3)], dims, -9, 9)
    index = c.operand("int", where, -2, n + 1)
    rest = [d for d in dims if d != dims[at] and d not in where]
    out = where + rest
    y = np.zeros([c.size[d] for d in out], table.dtype)
    for at_out in np.ndindex(*y.shape):
        of = dict(zip(out, at_out))
        i = index[tuple(of[d] for d in where)]
        if 0 <= i < n:
            y[at_out] = table[tuple(i if d == dims[at] else of[d] for d in dims)]
    return out, y


def scatter_add(c):
    dims = c.dims(1, 4)
    where = c.some(dims)
    into = c.dims(1, 1, [d for d in NAMES if d not in dims])[0]
    rest = c.some(dims)
    out = c.shuffled(rest + [into])
    c.args["dim"] = into
    x = c.operand(["real", "int"][c.below(2)], dims, -9, 9)
    index = c.operand("int", where, -1, c.size[into])
    y = np.zeros([c.size[d] for d in out], x.dtype)
    for at_x in np.ndindex(*x.shape):
        of = dict(zip(dims, at_x))
        i = index[tuple(of[d] for d in where)]
        if 0 <= i < c.size[into]:
            of[into] = i
            np.add.at(y, tuple(of[d] for d in out), x[at_x])
    return out, y


def window(c):
    dims = c.dims(1, 4)
    at, n = c.along(dims)
    x = c.operand(["real", "flag", "int"][c.below(3)], dims, -9, 9)
    name = ["slice", "pad", "shift", "roll", "concat", "split"][c.below(6)]
    c.args["window"] = name
    if name == "slice":
        size = 1 + c.below(n)
        begin = c.below(n - size + 1)
        c.args.update(begin=begin, size=size)
        y = np.take(x, range(begin, begin + size), axis=at)
    elif name == "pad":
        before, after = c.below(8), c.below(8)
        c.args.update(before=before, after=after)
        y = np.pad(x, [(before, after) if i == at else (0, 0) for i in range(x.ndim)])
    elif name in ("shift", "roll"):
        offset = c.below(21) - 10
        c.args["offset"] = offset
        y = np.roll(x, offset, axis=at)
        if name == "shift":
            move = np.moveaxis(y.copy(), at, 0)
            if offset >= 0:
                move[: min(offset, n)] = 0
            else:
                move[max(n + offset, 0):] = 0
            y = np.moveaxis(move, 0, at)
    elif name == "concat":
        kind = c.operands[0]["kind"]
        parts = [x]
        for _ in range(c.below(4)):
            size = dict(c.size)
            size[dims[at]] = 1 + c.below(6)
            parts.append(c.operand(kind, dims, -9, 9, size))
        y = np.concatenate(parts, axis=at)
    else:
        cuts = sorted({1 + c.below(max(n - 1, 1)) for _ in range(3)} - {n} if n > 1 else set())
        sizes = list(np.diff([0] + cuts + [n]))
        which = c.below(len(sizes))
        c.args.update(sizes=[int(s) for s in sizes], which=which)
        y = np.split(x, cuts, axis=at)[which]
    return dims, y


def stack(c):
    dims = c.dims(0, 3)
    xs = [c.operand("real", dims) for _ in range(1 + c.below(4))]
    axis = c.below(len(dims) + 1)
    c.args["axis"] = axis
    return dims[:axis] + ["new"] + dims[axis:], np.stack(xs, axis=axis)


def order(c):
    dims = c.dims(1, 4)
    at, n = c.along(dims)
    name = ["sort", "argsort", "argmax", "argmin", "top", "nth"][c.below(6)]
    c.args["order"] = name
    x = c.operand(["real", "step", "int"][c.below(3)], dims, -3, 3)
    down, k = c.below(2), 1 + c.below(n)
    c.args.update(descending=down, k=k)
    rest = [d for d in dims if d != dims[at]]
    index = np.argsort(-x if down else x, axis=at, kind="stable")
    value = np.take_along_axis(x, index, axis=at)
    if name == "sort":
        return dims, value
    if name == "argsort":
        return dims, index
    if name in ("argmax", "argmin"):
        return rest, getattr(np, name)(x, axis=at)
    if name == "nth":
        return rest, np.take(value, k - 1, axis=at)
    return rest + ["new"], np.moveaxis(np.take(value, range(k), axis=at), at, -1)


def elementwise(c):
    union = c.dims(1, 4)
    name = ["where", "maximum", "minimum", "floordiv", "mod", "add"][c.below(6)]
    c.args["function"] = name
    parts = [c.shuffled(c.some(union)) for _ in range(3)]
    xs = []
    if name == "where":
        xs.append(("flag", c.operand("flag", parts[2])))
    kind = "step" if name in ("maximum", "minimum", "where") else ["step", "int"][c.below(2)]
    for d in parts[:2]:
        xs.append((kind, c.operand(kind, d, 1, 9)))
    spread = []
    names = ([parts[2]] if name == "where" else []) + parts[:2]
    for (_, x), d in zip(xs, names):
        y = np.transpose(x, [d.index(e) for e in union if e in d])
        spread.append(y.reshape([c.size[e] if e in d else 1 for e in union]))
    fn = {"where": np.where, "maximum": np.maximum, "minimum": np.minimum,
          "floordiv": np.floor_divide, "mod": np.mod, "add": np.add}[name]
    with np.errstate(all="ignore"):
        y = fn(*spread)
    full = np.broadcast_to(y, [c.size[e] for e in union])
    return union, full


MAKERS = [einsum, einsum, reduction, reduction, cumsum, gather, scatter_add, window, window, stack,
          order, order, elementwise]


def number(v):
    if isinstance(v, (bool, np.bool_)):
        return int(v)
    if isinstance(v, (int, np.integer)):
        return int(v)
    return float(v) if np.isfinite(v) else str(float(v))


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numpy.jsonl")
    with open(path, "w", encoding="ascii") as f:
        for k in range(CASES):
            c = Case(seed * 100000 + k)
            maker = MAKERS[c.below(len(MAKERS))]
            dims, y = maker(c)
            shape = [[d, int(n)] for d, n in zip(dims, np.shape(y))]
            line = {"op": maker.__name__, "seed": c.seed, "args": c.args, "in": c.operands,
                    "shape": shape, "out": [number(v) for v in np.asarray(y).reshape(-1)]}
            f.write(json.dumps(line, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
