/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

int utf8_decode(const uint8_t *text, int64_t left, uint32_t *point)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = text[0];
    if (first < 0x80) {
        *point = first;
        return 1;
    }
    const int n = first >= 0xF8 ? 0 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
    if (n == 0 || n > left) return 0;
    uint32_t p = first & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0;
        p = p << 6 | (text[i] & 0x3F);
    }
    if (p < least[n] || p > UTF8_MAX_POINT || (p >= 0xD800 && p <= 0xDFFF)) return 0;
    *point = p;
    return n;
}

int utf8_encode(uint32_t point, uint8_t out[4])
{
    if (point < 0x80) {
        out[0] = (uint8_t)point;
        return 1;
    }
    const int n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t mark[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = n - 1; i > 0; i--, point >>= 6)
        out[i] = (uint8_t)(0x80 | (point & 0x3F));
    out[0] = (uint8_t)(mark[n] | point);
    return n;
}

int64_t utf8_check(const void *text, int64_t bytes)
{
    const uint8_t *s = text;
    uint32_t point;
    for (int64_t i = 0; i < bytes;) {
        const int n = utf8_decode(s + i, bytes - i, &point);
        if (n == 0) return i;
        i += n;
    }
    return -1;
}

char *utf8_repair(const void *text, int64_t bytes, int64_t *out_bytes)
{
    const uint8_t *s = text;
    char *out = mem_alloc((size_t)bytes * 3 + 1);
    int64_t used = 0;
    uint32_t point;
    for (int64_t i = 0; i < bytes;) {
        const int n = utf8_decode(s + i, bytes - i, &point);
        memcpy(out + used, n ? (const char *)s + i : "\xEF\xBF\xBD", n ? (size_t)n : 3);
        used += n ? n : 3;
        i += n ? n : 1;
    }
    out[used] = '\0';
    if (out_bytes) *out_bytes = used;
    return out;
}

char *utf8_quote(const char *text, char *out, size_t room)
{
    const size_t end = strlen(text);
    size_t used = 0;
    for (size_t i = 0; i < end;) {
        uint32_t point = 0;
        const int n = utf8_decode((const uint8_t *)text + i, (int64_t)(end - i), &point);
        const int is_plain = n > 0 && point >= 0x20 && (point < 0x7F || point > 0x9F);
        const size_t need = is_plain ? (size_t)n : 4;
        if (used + need + 4 > room) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        if (is_plain) {
            memcpy(out + used, text + i, need);
        } else {
            snprintf(out + used, 5, "\\x%02x", (unsigned)(uint8_t)text[i]);
        }
        used += need;
        i += is_plain ? (size_t)n : 1;
    }
    out[used] = '\0';
    return out;
}
