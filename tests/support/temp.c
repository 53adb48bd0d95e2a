/* SPDX-License-Identifier: Apache-2.0 */
#include "support/temp.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"

static char folder[256];

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

int temp_setup(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/mtf-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

int temp_teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *temp_path(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *temp_write(const char *name, const void *data, size_t bytes)
{
    const char *path = temp_path(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    return path;
}

const char *temp_text(const char *name, const char *text)
{
    return temp_write(name, text, strlen(text));
}

char *temp_read(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const size_t n = (size_t)ftell(f);
    rewind(f);
    char *data = mem_zalloc(n + 1);
    assert_int_equal(fread(data, 1, n, f), n);
    fclose(f);
    if (bytes) *bytes = n;
    return data;
}

void expect_error(mtf_status status, mtf_status want, mtf_err *err, const char *text)
{
    char got[sizeof err->text] = "";
    const size_t skip = strlen(folder);
    char *out = got;
    for (const char *s = err->text; *s;) {
        if (skip && strncmp(s, folder, skip) == 0) {
            s += skip + (s[skip] == '/');
        } else {
            *out++ = *s++;
        }
    }
    *out = '\0';
    assert_string_equal(got, text);
    assert_int_equal(status, want);
    assert_int_equal(err->status, want);
    *err = (mtf_err){.status = MTF_OK};
}

void expect_ok(mtf_status status, const mtf_err *err)
{
    if (status != MTF_OK || err->status != MTF_OK) fail_msg("unexpected error: %s", err->text);
}
