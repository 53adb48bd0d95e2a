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
    fail_msg("tests/golden/%s differs at line %d:\n  expected: %.*s\n  found:    %.*s\n"
             "if the change is right, `make golden` rewrites the file",
             name, line, (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
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
