#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes transformer.safetensors beside this file: the loss of the first step and all gradients of a
small Transformer, by PyTorch in f64. Run by hand (Debian: python3-torch) when the model changes.

The model is written out here from its definition; it shares nothing with the C code."""

import json
import math
import os
import struct

import torch

VOCAB, LENGTH, MODEL, HEADS, KV, FF, BATCH, LAYERS = 97, 16, 32, 4, 8, 64, 5, 2
NAMES = {torch.float32: "F32", torch.float64: "F64", torch.int32: "I32"}


def write_safetensors(path, tensors):
    # Larger elements first, so that all are aligned.
    order = sorted(tensors, key=lambda name: -tensors[name].element_size())
    header, data = {}, b""
    for name in order:
        t = tensors[name].detach().contiguous()
        raw = t.numpy().tobytes()
        header[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def make_weights(gen):
    def normal(scale, *shape, mean=0.0):
        return mean + scale * torch.randn(*shape, generator=gen, dtype=torch.float64)

    w = {"embedding": normal(0.5, VOCAB, MODEL), "positions": normal(0.5, LENGTH, MODEL)}
    for i in range(LAYERS):
        a, f = f"layer_{i}/attention/", f"layer_{i}/feed_forward/"
        for block in (a, f):
            w[block + "norm/scale"] = normal(0.2, MODEL, mean=1.0)
            w[block + "norm/bias"] = normal(0.2, MODEL)
        for name in ("wq", "wk", "wv"):
            w[a + name] = normal(0.3, MODEL, HEADS, KV)
        w[a + "wo"] = normal(0.2, HEADS, KV, MODEL)
        w[f + "wi"] = normal(0.2, MODEL, FF)
        w[f + "wo"] = normal(0.2, FF, MODEL)
    w["final_norm/scale"] = normal(0.2, MODEL, mean=1.0)
    w["final_norm/bias"] = normal(0.2, MODEL)
    w["softmax"] = normal(0.3, MODEL, VOCAB)
    # Stored in f32: what is computed here must start from what is stored.
    return {name: t.to(torch.float32) for name, t in w.items()}


def layer_norm(x, w, name):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-6) * w[name + "/scale"] + w[name + "/bias"]


def loss_of(w, inputs, targets, tied):
    x = w["embedding"][inputs] + w["positions"]
    later = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), diagonal=1)
    for i in range(LAYERS):
        a, f = f"layer_{i}/attention/", f"layer_{i}/feed_forward/"
        n = layer_norm(x, w, a + "norm")
        q, k, v = (torch.einsum("btd,dhk->bhtk", n, w[a + name]) for name in ("wq", "wk", "wv"))
        scores = torch.einsum("bhtk,bhmk->bhtm", q, k) / math.sqrt(KV)
        p = torch.softmax(scores.masked_fill(later, -math.inf), -1)
        x = x + torch.einsum("bhtm,bhmk,hkd->btd", p, v, w[a + "wo"])
        h = layer_norm(x, w, f + "norm") @ w[f + "wi"]
        x = x + torch.nn.functional.gelu(h, approximate="tanh") @ w[f + "wo"]
    logits = layer_norm(x, w, "final_norm") @ (w["embedding"].T if tied else w["softmax"])
    flat = targets.reshape(-1)
    return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), flat, ignore_index=-1,
                                             reduction="sum")


def main():
    gen = torch.Generator().manual_seed(1)
    weights = make_weights(gen)
    inputs = torch.randint(0, VOCAB, (BATCH, LENGTH), generator=gen)
    targets = torch.randint(0, VOCAB, (BATCH, LENGTH), generator=gen)
    targets[1, 9:] = -1
    targets[4, :] = -1
    out = {"inputs": inputs.to(torch.int32), "targets": targets.to(torch.int32)}
    out.update({"weight/" + name: t for name, t in weights.items()})
    for case, tied in (("tied", True), ("separate", False)):
        w = {name: t.to(torch.float64).requires_grad_() for name, t in weights.items()
             if not (tied and name == "softmax")}
        loss = loss_of(w, inputs, targets, tied)
        loss.backward()
        out[case + "/loss"] = loss.detach().reshape(1)
        out.update({f"{case}/gradient/{name}": t.grad for name, t in w.items()})
    write_safetensors(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                   "transformer.safetensors"), out)


if __name__ == "__main__":
    main()
