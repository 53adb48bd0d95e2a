/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/pieces.h"

#include <string.h>

#include "base/check.h"

/* Where piece i begins in the group's part of the dim. */
static int64_t begin_of(const pieces *p, int i)
{
    return block_begin(p->base + i, p->n, p->parts) - p->start;
}

pieces pieces_of(const comm_cut *cut, int members, int64_t size)
{
    MTF_CHECK(cut->n >= 0 && cut->outer >= 0 && cut->inner >= 0 && cut->base >= 0 &&
                  cut->base + members <= cut->parts,
              "pieces %lld .. %lld of a dim that is cut in %lld", (long long)cut->base,
              (long long)cut->base + members - 1, (long long)cut->parts);
    pieces p = {.members = members,
                .n = cut->n,
                .parts = cut->parts,
                .base = cut->base,
                .outer = cut->outer,
                .unit = cut->inner * size};
    p.start = block_begin(p.base, p.n, p.parts);
    p.extent = begin_of(&p, members);
    return p;
}

int64_t pieces_whole_bytes(const pieces *p)
{
    return p->outer * p->extent * p->unit;
}

int64_t piece_bytes(const pieces *p, int i)
{
    return p->outer * (begin_of(p, i + 1) - begin_of(p, i)) * p->unit;
}

int64_t pieces_longest(const pieces *p)
{
    int64_t longest = 0;
    for (int i = 0; i < p->members; i++) {
        const int64_t bytes = piece_bytes(p, i);
        if (bytes > longest) longest = bytes;
    }
    return longest;
}

int64_t cut_longest(const comm_cut *cut, int64_t size)
{
    return cut->outer * ((cut->n + cut->parts - 1) / cut->parts) * cut->inner * size;
}

int64_t piece_offset(const pieces *p, int i, int64_t at, int64_t *run)
{
    const int64_t begin = begin_of(p, i);
    const int64_t row = (begin_of(p, i + 1) - begin) * p->unit;
    if (run) *run = row - at % row;
    return (at / row * p->extent + begin) * p->unit + at % row;
}

bool pieces_contiguous(const pieces *p)
{
    return p->outer <= 1 || p->members == 1;
}

void piece_pack(const pieces *p, int i, int64_t at, int64_t bytes, const void *whole, void *flat)
{
    for (int64_t done = 0, run; done < bytes; done += run) {
        const char *from = (const char *)whole + piece_offset(p, i, at + done, &run);
        if (run > bytes - done) run = bytes - done;
        memcpy((char *)flat + done, from, (size_t)run);
    }
}

void piece_unpack(const pieces *p, int i, int64_t at, int64_t bytes, const void *flat, void *whole)
{
    for (int64_t done = 0, run; done < bytes; done += run) {
        char *to = (char *)whole + piece_offset(p, i, at + done, &run);
        if (run > bytes - done) run = bytes - done;
        memcpy(to, (const char *)flat + done, (size_t)run);
    }
}
