/* SPDX-License-Identifier: Apache-2.0 */
#include "support/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check.h"

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    size_t used = 0, room = 1 << 16;
    char *text = mem_alloc(room);
    for (size_t n; (n = fread(text + used, 1, room - used - 1, f)) > 0;) {
        used += n;
        if (room - used < 2) text = mem_realloc(text, room *= 2);
    }
    fclose(f);
    text[used] = '\0';
    return text;
}

/* Of a long line the part that matters: some words around byte `at`. */
static int excerpt(const char *line, size_t at, const char **from)
{
    enum { BEFORE = 60, ROOM = 160 };
    const size_t length = strcspn(line, "\n"), start = at > BEFORE ? at - BEFORE : 0;
    *from = line + start;
    return (int)(length - start < ROOM ? length - start : ROOM);
}

static void report_first_difference(const char *name, const char *want, const char *got)
{
    int line = 1;
    const char *a = want, *b = got;
    while (*a && *b) {
        const size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if (n != m || strncmp(a, b, n) != 0) break;
        a += n + (a[n] == '\n');
        b += m + (b[m] == '\n');
        line++;
    }
    size_t at = 0;
    while (a[at] && a[at] != '\n' && a[at] == b[at])
        at++;
    const char *expected, *found;
    const int n = excerpt(a, at, &expected), m = excerpt(b, at, &found);
    const int head = (int)strcspn(a, "\n:");
    fail_msg("tests/golden/%s differs at line %d (%.*s), byte %zu:\n  expected: %.*s\n"
             "  found:    %.*s\nif the change is right, `make golden` rewrites the file",
             name, line, head, a, at + 1, n, expected, m, found);
}

void golden_check(const char *name, const char *text)
{
    const char *source = getenv("MTF_SOURCE_DIR");
    char path[2048];
    snprintf(path, sizeof path, "%s/tests/golden/%s", source ? source : ".", name);
    if (getenv("MTF_UPDATE_GOLDEN")) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        return;
    }
    char *want = read_all(path);
    if (!want) fail_msg("tests/golden/%s is missing; `make golden` writes it", name);
    if (strcmp(want, text) != 0) report_first_difference(name, want, text);
    mem_free(want);
}
