/* SPDX-License-Identifier: Apache-2.0 */
#include "text/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"

struct corpus {
    char *path;
    const uint8_t *map;
    int64_t bytes;
    const tokenizer *t;
    tokenizer *own;       /* the vocabulary that this corpus made, or NULL */
    int64_t count;        /* tokens */
    int32_t of_byte[256]; /* token of each byte, where tokens are read from the map */
    uint16_t *narrow;     /* tokens of a text that is not ASCII, when they fit in 16 bits */
    int32_t *wide;        /* the same when they do not */
};

static mtf_status check_kind(const char *path, const struct stat *info, mtf_err *err)
{
    if (S_ISDIR(info->st_mode))
        return err_set(err, MTF_INVALID, "corpus '%s' is a folder; give a text file", path);
    if (!S_ISREG(info->st_mode))
        return err_set(err, MTF_INVALID,
                       "corpus '%s' is a pipe or a device; it is read by position, so save it as a "
                       "regular file",
                       path);
    if (info->st_size == 0) return err_set(err, MTF_INVALID, "corpus '%s' is empty", path);
    return MTF_OK;
}

static mtf_status map_file(corpus *c, int fd, mtf_err *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return err_set(err, MTF_FAILED, "corpus '%s': %s", c->path, strerror(errno));
    TRY(check_kind(c->path, &info, err));
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return err_set(err, MTF_FAILED, "corpus '%s': cannot map %lld bytes: %s", c->path,
                       (long long)info.st_size, strerror(errno));
    c->map = map;
    c->bytes = info.st_size;
    return MTF_OK;
}

/* O_NONBLOCK: a pipe that nobody writes to must be refused, not waited for. */
static mtf_status open_map(corpus *c, mtf_err *err)
{
    const int fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(err, MTF_INVALID, "cannot open corpus '%s': %s", c->path, strerror(errno));
    const mtf_status status = map_file(c, fd, err);
    close(fd);
    return status;
}

/* Counts the characters, all of which must be in the vocabulary, and says whether all are ASCII. */
static mtf_status scan(corpus *c, bool *is_ascii, mtf_err *err)
{
    *is_ascii = true;
    for (int64_t i = 0; i < c->bytes; c->count++) {
        if (c->of_byte[c->map[i]] >= 0) {
            i++;
            continue;
        }
        *is_ascii = false;
        int32_t id = 0;
        const int n = tokenizer_next(c->t, c->path, c->map, c->bytes, i, &id, err);
        if (n == 0) return MTF_INVALID;
        i += n;
    }
    return MTF_OK;
}

/* Writes the tokens of a text that is not ASCII to an array. */
static void fill(corpus *c)
{
    const bool is_narrow = c->t->vocab <= UINT16_MAX + 1;
    if (is_narrow) {
        c->narrow = mem_alloc((size_t)c->count * sizeof *c->narrow);
    } else {
        c->wide = mem_alloc((size_t)c->count * sizeof *c->wide);
    }
    int32_t id = 0;
    for (int64_t i = 0, k = 0; i < c->bytes; k++) {
        id = c->of_byte[c->map[i]];
        i += id >= 0 ? 1 : tokenizer_next(c->t, c->path, c->map, c->bytes, i, &id, NULL);
        if (is_narrow) {
            c->narrow[k] = (uint16_t)id;
        } else {
            c->wide[k] = id;
        }
    }
}

static mtf_status index_tokens(corpus *c, mtf_err *err)
{
    for (int b = 0; b < 256; b++)
        c->of_byte[b] = c->t->kind == TOKENIZER_BYTES ? b : -1;
    if (c->t->kind == TOKENIZER_BYTES) {
        c->count = c->bytes;
        return MTF_OK;
    }
    for (int32_t i = 0; i < c->t->vocab && c->t->points[i] < 0x80; i++)
        c->of_byte[c->t->points[i]] = i;
    bool is_ascii;
    TRY(scan(c, &is_ascii, err));
    if (!is_ascii) fill(c);
    return MTF_OK;
}

/* Opens with the vocabulary `t`, or with that of the text where it is NULL. */
static mtf_status open_corpus(const char *path, tokenizer_kind kind, const tokenizer *t,
                              corpus **out, mtf_err *err)
{
    corpus *c = mem_zalloc(sizeof *c);
    c->path = mem_strdup(path);
    *out = NULL;
    mtf_status status = open_map(c, err);
    if (status == MTF_OK && !t && kind == TOKENIZER_BYTES) c->own = tokenizer_bytes();
    if (status == MTF_OK && !t && kind == TOKENIZER_CHARACTERS)
        status = tokenizer_characters(path, c->map, c->bytes, &c->own, err);
    c->t = t ? t : c->own;
    if (status == MTF_OK) status = index_tokens(c, err);
    if (status == MTF_OK) {
        *out = c;
    } else {
        corpus_free(&c);
    }
    return status;
}

mtf_status corpus_open(const char *path, tokenizer_kind kind, corpus **out, mtf_err *err)
{
    return open_corpus(path, kind, NULL, out, err);
}

mtf_status corpus_open_with(const char *path, const tokenizer *t, corpus **out, mtf_err *err)
{
    return open_corpus(path, t->kind, t, out, err);
}

void corpus_free(corpus **c)
{
    if (!*c) return;
    if ((*c)->map) munmap((void *)(uintptr_t)(*c)->map, (size_t)(*c)->bytes);
    tokenizer_free(&(*c)->own);
    mem_free((*c)->narrow);
    mem_free((*c)->wide);
    mem_free((*c)->path);
    mem_free(*c);
    *c = NULL;
}

int64_t corpus_count(const corpus *c)
{
    return c->count;
}

const char *corpus_path(const corpus *c)
{
    return c->path;
}

const tokenizer *corpus_tokenizer(const corpus *c)
{
    return c->t;
}

int32_t corpus_token(const corpus *c, int64_t i)
{
    MTF_CHECK(i >= 0 && i < c->count, "token %lld of %lld", (long long)i, (long long)c->count);
    return c->narrow ? c->narrow[i] : c->wide ? c->wide[i] : c->of_byte[c->map[i]];
}

void corpus_tokens(const corpus *c, int64_t first, int64_t n, int32_t *out)
{
    MTF_CHECK(first >= 0 && n >= 0 && first <= c->count - n, "tokens %lld+%lld of %lld",
              (long long)first, (long long)n, (long long)c->count);
    for (int64_t i = 0; i < n; i++)
        out[i] = corpus_token(c, first + i);
}

int64_t corpus_words(const corpus *c, corpus_range range)
{
    int64_t words = 0;
    bool inside = false;
    for (int64_t i = 0; i < range.count; i++) {
        const int32_t id = corpus_token(c, range.first + i);
        const uint32_t point = c->t->points ? c->t->points[id] : (uint32_t)id;
        const bool is_space = point == ' ' || (point >= '\t' && point <= '\r');
        words += !is_space && !inside;
        inside = !is_space;
    }
    return words;
}

void corpus_split(const corpus *c, double fraction, corpus_range *train, corpus_range *valid)
{
    const int64_t last = (int64_t)floor((double)c->count * fraction);
    *train = (corpus_range){.first = 0, .count = c->count - last};
    *valid = (corpus_range){.first = c->count - last, .count = last};
}
