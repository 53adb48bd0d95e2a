/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "support/temp.h"
#include "train/files.h"
#include "train/safetensors.h"

static const safetensors_tensor tensors[] = {
    {.name = "flags", .dtype = MTF_BOOL, .rank = 1, .extents = {3}},
    {.name = "block_0/é", .dtype = MTF_F32, .rank = 2, .extents = {2, 3}},
    {.name = "step", .dtype = MTF_I32, .rank = 0},
    {.name = "wide", .dtype = MTF_F64, .rank = 1, .extents = {2}},
    {.name = "none", .dtype = MTF_F32, .rank = 2, .extents = {0, 5}},
    {.name = "half", .dtype = MTF_BF16, .rank = 1, .extents = {3}},
};
enum { TENSORS = 6 };
static const safetensors_meta meta[] = {{"config", "a: \"b\"\n"}, {"vocabulary", "[10]"}};

static const uint8_t flags[3] = {1, 0, 1};
static const float matrix[6] = {1, 2, 3, 4, 5, 6.5f};
static const int32_t step = 41;
static const double wide[2] = {0.1, -1e300};
static const uint16_t narrow[3] = {0x3f80, 0xc000, 0x7f80};
static const void *const data[TENSORS] = {flags, matrix, &step, wide, wide, narrow};

static const char *write_file(const char *name)
{
    safetensors *s;
    mtf_err err = {.status = MTF_OK};
    const char *path = temp_path(name);
    expect_ok(safetensors_create(path, tensors, TENSORS, meta, 2, &s, &err), &err);
    for (int i = 0; i < TENSORS; i++) {
        const int64_t n = safetensors_at(s, i)->bytes, half = n / 2;
        expect_ok(safetensors_write(s, i, half, (const char *)data[i] + half, n - half, &err),
                  &err);
        expect_ok(safetensors_write(s, i, 0, data[i], half, &err), &err);
    }
    expect_ok(safetensors_finish(&s, &err), &err);
    assert_null(s);
    return path;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    safetensors *s;
    mtf_err err = {.status = MTF_OK};
    expect_ok(safetensors_open(write_file("a.safetensors"), &s, &err), &err);
    assert_int_equal(safetensors_count(s), TENSORS);
    for (int i = 0; i < TENSORS; i++) {
        const int at = safetensors_find(s, tensors[i].name);
        const safetensors_tensor *t = safetensors_at(s, at);
        assert_string_equal(t->name, tensors[i].name);
        assert_true(t->dtype == tensors[i].dtype && t->rank == tensors[i].rank);
        for (int d = 0; d < t->rank; d++)
            assert_true(t->extents[d] == tensors[i].extents[d]);
        assert_true(t->offset % mtf_dtype_size(t->dtype) == 0);
        char got[64] = {0};
        expect_ok(safetensors_read(s, at, 0, got, t->bytes, &err), &err);
        assert_memory_equal(got, data[i], (size_t)t->bytes);
    }
    float middle[2];
    expect_ok(safetensors_read(s, safetensors_find(s, "block_0/é"), 8, middle, 8, &err), &err);
    assert_true(middle[0] == 3 && middle[1] == 4);
    assert_int_equal(safetensors_find(s, "block_0"), -1);
    assert_string_equal(safetensors_value(s, "config"), "a: \"b\"\n");
    assert_string_equal(safetensors_value(s, "vocabulary"), "[10]");
    assert_null(safetensors_value(s, "nothing"));
    safetensors_close(&s);
    safetensors_close(&s);
}

static void the_bytes_are_as_the_format_says(void **state)
{
    (void)state;
    size_t bytes;
    char *file = temp_read(write_file("b.safetensors"), &bytes);
    uint64_t n;
    memcpy(&n, file, 8); /* this test runs on little-endian machines */
    static const char header[] =
        "{\"__metadata__\":{\"config\":\"a: \\\"b\\\"\\n\",\"vocabulary\":\"[10]\"},"
        "\"wide\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]},"
        "\"block_0/é\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[16,40]},"
        "\"step\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[40,44]},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[44,44]},"
        "\"half\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[44,50]},"
        "\"flags\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[50,53]}}";
    assert_true(n % 8 == 0 && n >= sizeof header - 1 && n < sizeof header + 7);
    assert_memory_equal(file + 8, header, sizeof header - 1);
    for (size_t i = 8 + sizeof header - 1; i < 8 + n; i++)
        assert_int_equal(file[i], ' ');
    assert_int_equal(bytes, 8 + n + 53);
    assert_memory_equal(file + 8 + n, wide, 16);
    assert_memory_equal(file + 8 + n + 44, narrow, 6);
    assert_memory_equal(file + 8 + n + 50, flags, 3);
    mem_free(file);
}

static void several_processes_write_one_file(void **state)
{
    (void)state;
    enum { N = 1000, PARTS = 4 };
    const safetensors_tensor one = {.name = "x", .dtype = MTF_I32, .rank = 1, .extents = {N}};
    safetensors *s;
    mtf_err err = {.status = MTF_OK};
    const char *tmp = temp_path("c.tmp"), *path = temp_path("c.safetensors");
    expect_ok(safetensors_create(tmp, &one, 1, NULL, 0, &s, &err), &err);
    int32_t values[N], back[N];
    for (int i = 0; i < N; i++)
        values[i] = i * i;
    for (int part = 1; part < PARTS; part++) {
        const pid_t child = fork();
        if (child == 0) {
            safetensors *mine;
            mtf_status status = safetensors_open_write(tmp, &mine, &err);
            if (status == MTF_OK)
                status = safetensors_write(mine, safetensors_find(mine, "x"), part * N,
                                           (char *)values + part * N, N, &err);
            if (status == MTF_OK) status = safetensors_finish(&mine, &err);
            _exit((int)status);
        }
        int code;
        assert_int_equal(waitpid(child, &code, 0), child);
        assert_int_equal(code, 0);
    }
    expect_ok(safetensors_write(s, 0, 0, values, N, &err), &err);
    expect_ok(safetensors_finish(&s, &err), &err);
    expect_ok(file_sync_rename(tmp, path, &err), &err);
    struct stat info;
    assert_int_equal(stat(tmp, &info), -1);
    expect_ok(safetensors_open(path, &s, &err), &err);
    expect_ok(safetensors_read(s, 0, 0, back, sizeof back, &err), &err);
    assert_memory_equal(values, back, sizeof back);
    safetensors_close(&s);
}

/* A file with this header and `bytes` bytes of data. */
static const char *with_header(const char *header, size_t bytes)
{
    const size_t n = strlen(header);
    char *file = mem_zalloc(8 + n + bytes);
    const uint64_t size = n;
    memcpy(file, &size, 8);
    memcpy(file + 8, header, n);
    const char *path = temp_write("bad", file, 8 + n + bytes);
    mem_free(file);
    return path;
}

static void expect_bad(const char *path, const char *message)
{
    safetensors *s;
    mtf_err err = {.status = MTF_OK};
    expect_error(safetensors_open(path, &s, &err), MTF_INVALID, &err, message);
    assert_null(s);
}

#define T(dtype, shape, offsets)                                                                   \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void every_damage_has_its_message(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t bytes;
        const char *message;
    } cases[] = {
        {"", 0, "'bad': the header is broken JSON: '[' or '{' expected near end of file"},
        {"{\"a\":", 0, "'bad': the header is broken JSON: unexpected token near end of file"},
        {"[1]", 0, "'bad': the header is not a JSON object"},
        {"{} x", 0, "'bad': the header is broken JSON: end of file expected near 'x'"},
        {"{\"a\":3}", 0, "'bad': tensor 'a' is not described by an object"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "'bad': tensor 'a' has no dtype"},
        {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "'bad': tensor 'a' has no dtype"},
        {"{\"a\":" T("F16", "[1]", "[0,2]") "}", 2,
         "'bad': tensor 'a' has dtype 'F16'; only F32, F64, BF16, I32 and BOOL can be read"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "'bad': tensor 'a' has no shape"},
        {"{\"a\":" T("F32", "4", "[0,4]") "}", 4, "'bad': tensor 'a' has no shape"},
        {"{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4,
         "'bad': tensor 'a' has 13 dims; at most 12 can be read"},
        {"{\"a\":" T("F32", "[-1]", "[0,4]") "}", 4,
         "'bad': tensor 'a' has a shape that is no list of whole numbers from 0 on"},
        {"{\"a\":" T("F32", "[1.0]", "[0,4]") "}", 4,
         "'bad': tensor 'a' has a shape that is no list of whole numbers from 0 on"},
        {"{\"a\":" T("F32", "[4294967296,4294967296]", "[0,4]") "}", 4,
         "'bad': tensor 'a' has a shape that is too large"},
        {"{\"a\":" T("F64", "[2305843009213693952]", "[0,4]") "}", 4,
         "'bad': tensor 'a' has a shape that is too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4,
         "'bad': tensor 'a' has no data_offsets of two whole numbers"},
        {"{\"a\":" T("F32", "[1]", "[0]") "}", 4,
         "'bad': tensor 'a' has no data_offsets of two whole numbers"},
        {"{\"a\":" T("F32", "[1]", "[0,\"4\"]") "}", 4,
         "'bad': tensor 'a' has no data_offsets of two whole numbers"},
        {"{\"a\":" T("F32", "[1]", "[-4,0]") "}", 4, "'bad': tensor 'a' has data_offsets -4 to 0"},
        {"{\"a\":" T("F32", "[1]", "[4,0]") "}", 4, "'bad': tensor 'a' has data_offsets 4 to 0"},
        {"{\"a\":" T("F32", "[1]", "[0,99999999999999999999]") "}", 4,
         "'bad': the header is broken JSON: too big integer near '99999999999999999999'"},
        {"{\"a\":" T("F32", "[2]", "[0,8]") "}", 7,
         "'bad': tensor 'a' ends at byte 8 of the data, but the file holds only 7; it is "
         "truncated"},
        {"{\"a\":" T("F32", "[2]", "[0,4]") "}", 4,
         "'bad': tensor 'a' has 4 bytes, but its shape and dtype take 8"},
        {"{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[1]", "[4,8]") "}", 8,
         "'bad': tensor 'b' overlaps tensor 'a'"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[0,4]") "}", 4,
         "'bad': tensor 'b' overlaps tensor 'a'"},
        {"{\"a\":" T("F32", "[1]", "[4,8]") "}", 8,
         "'bad': tensor 'a' begins at byte 4 of the data; bytes from 0 on belong to no tensor"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[8,12]") "}", 12,
         "'bad': tensor 'b' begins at byte 8 of the data; bytes from 4 on belong to no tensor"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") "}", 6, "'bad': the last 2 bytes belong to no tensor"},
        {"{}", 1, "'bad': the last 1 bytes belong to no tensor"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", 8,
         "'bad': the header is broken JSON: duplicate object key near '\"a\"'"},
        {"{\"__metadata__\":[]}", 0, "'bad': __metadata__ is not an object"},
        {"{\"__metadata__\":{\"k\":1}}", 0, "'bad': metadata 'k' is not a text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_bad(with_header(cases[i].header, cases[i].bytes), cases[i].message);
}

static void files_that_are_none(void **state)
{
    (void)state;
    expect_bad(temp_path("missing"), "cannot open 'missing': No such file or directory");
    assert_int_equal(mkdir(temp_path("folder"), 0777), 0);
    expect_bad(temp_path("folder"), "'folder': a folder, not a file");
    assert_int_equal(mkfifo(temp_path("pipe"), 0666), 0);
    expect_bad(temp_path("pipe"), "'pipe': not a regular file");
    expect_bad(temp_write("bad", "1234567", 7),
               "'bad': 7 bytes are too few for a safetensors file");
    expect_bad(temp_write("bad", "\xff\xff\xff\xff\xff\xff\xff\xff", 8),
               "'bad': a header of 18446744073709551615 bytes: this is no safetensors file");
    expect_bad(temp_write("bad", "\1\xe1\xf5\5\0\0\0\0", 8),
               "'bad': a header of 100000001 bytes: this is no safetensors file");
    expect_bad(temp_write("bad", "\0\xe1\xf5\5\0\0\0\0{}", 10),
               "'bad': the header has 100000000 bytes, but the file ends after 2; it is truncated");
}

/* Reads all that a file claims to hold: whatever opens must be readable. */
static void read_all(safetensors *s)
{
    for (int i = 0; i < safetensors_count(s); i++) {
        const safetensors_tensor *t = safetensors_at(s, i);
        mtf_err err = {.status = MTF_OK};
        char *to = mem_alloc((size_t)t->bytes);
        expect_ok(safetensors_read(s, i, 0, to, t->bytes, &err), &err);
        mem_free(to);
        assert_int_equal(safetensors_find(s, t->name), i);
    }
}

static void random_damage_never_crashes(void **state)
{
    (void)state;
    size_t bytes;
    char *good = temp_read(write_file("good"), &bytes), *file = mem_alloc(bytes);
    uint64_t r = 2463534242;
    int opened = 0, refused = 0;
    for (int i = 0; i < 10000; i++) {
        memcpy(file, good, bytes);
        size_t n = bytes;
        for (int k = i % 4; k >= 0; k--) {
            r = r * 6364136223846793005u + 1442695040888963407u;
            if (i % 5 == 0) n = (size_t)(r >> 33) % (bytes + 1);
            file[(r >> 33) % bytes] ^=
                (char)(i % 3 ? UINT64_C(1) << (r >> 20 & 7) : r >> 20 & 0xFF);
        }
        safetensors *s;
        mtf_err err = {.status = MTF_OK};
        const mtf_status status = safetensors_open(temp_write("fuzz", file, n), &s, &err);
        assert_int_equal(status, err.status);
        assert_null(strchr(err.text, '\n'));
        if (s) read_all(s);
        opened += s != NULL;
        refused += s == NULL;
        safetensors_close(&s);
    }
    assert_true(opened > 100 && refused > 5000);
    mem_free(good);
    mem_free(file);
}

static void disks_that_fail(void **state)
{
    (void)state;
    safetensors *s;
    mtf_err err = {.status = MTF_OK};
    expect_error(safetensors_create("/dev/full", tensors, 1, NULL, 0, &s, &err), MTF_FAILED, &err,
                 "writing '/dev/full': 88 bytes: No space left on device");
    assert_null(s);
    struct stat info;
    assert_int_equal(stat("/dev/full", &info), 0);
    expect_error(safetensors_create(temp_path("no/x"), tensors, 1, NULL, 0, &s, &err), MTF_FAILED,
                 &err, "cannot create 'no/x': No such file or directory");
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    const safetensors_tensor large = {.name = "x", .dtype = MTF_F32, .rank = 1, .extents = {2000}};
    const char *path = temp_path("large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const mtf_status status = safetensors_create(path, &large, 1, NULL, 0, &s, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_error(status, MTF_FAILED, &err, "writing 'large': 8088 bytes: File too large");
    assert_int_equal(stat(path, &info), -1);
    /* The limit, or a full disk, may also come later. */
    expect_ok(safetensors_create(path, &large, 1, NULL, 0, &s, &err), &err);
    static const char zeros[8000];
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const mtf_status later = safetensors_write(s, 0, 0, zeros, 8000, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_error(later, MTF_FAILED, &err, "writing 'large': 8000 bytes: File too large");
    expect_ok(safetensors_finish(&s, &err), &err);
}

static void files_that_shrink_while_open(void **state)
{
    (void)state;
    safetensors *s;
    mtf_err err = {.status = MTF_OK};
    const char *path = write_file("shrinks");
    expect_ok(safetensors_open(path, &s, &err), &err);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 2), 0);
    char got[3];
    expect_error(safetensors_read(s, safetensors_find(s, "flags"), 0, got, 3, &err), MTF_FAILED,
                 &err, "reading 'shrinks': 3 bytes: the file ends after 1");
    safetensors_close(&s);
}

static void renaming(void **state)
{
    (void)state;
    mtf_err err = {.status = MTF_OK};
    expect_error(file_sync_rename(temp_path("gone"), temp_path("x"), &err), MTF_FAILED, &err,
                 "cannot open 'gone': No such file or directory");
    const char *tmp = temp_text("t", "new"), *path = temp_text("old", "old");
    expect_ok(file_sync_rename(tmp, path, &err), &err);
    char *text = temp_read(path, NULL);
    assert_string_equal(text, "new");
    mem_free(text);
    assert_int_equal(mkdir(temp_path("target"), 0777), 0);
    expect_error(file_replace(temp_path("target"), "x", 1, &err), MTF_FAILED, &err,
                 "renaming 'target.tmp' to 'target': Is a directory");
    struct stat info;
    assert_int_equal(stat(temp_path("target.tmp"), &info), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(the_bytes_are_as_the_format_says),
        cmocka_unit_test(several_processes_write_one_file),
        cmocka_unit_test(every_damage_has_its_message),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(random_damage_never_crashes),
        cmocka_unit_test(disks_that_fail),
        cmocka_unit_test(files_that_shrink_while_open),
        cmocka_unit_test(renaming),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
