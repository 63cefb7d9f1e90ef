// SPDX-License-Identifier: Apache-2.0
/*
 * Escapes and formats the texts of pages (text.h).
 */
#include "text.h"

#include <monkey/escape.h>
#include <monkey/time.h>
#include <monkey/utf8.h>

#include <inttypes.h>
#include <stdio.h>

/* ── HTML ── */

/* Control characters, those of HTML that are none (U+FDD0 ..., U+FFFE), and those that change the direction. */
static bool is_hidden_char(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfdd0 && c <= 0xfdef) || (c & 0xfffe) == 0xfffe;
}

/* Appends a control character of a name as the picture of it (U+2400 and following). */
static void add_picture(struct mk_buf *out, uint32_t c)
{
    char picture[] = {'\xe2', '\x90', (char)(0x80 + c)};
    mk_buf_add(out, picture, sizeof(picture));
}

static void add_char(struct mk_buf *out, struct mk_str bytes, bool lines)
{
    uint32_t c = mk_utf8_decode(bytes);
    if (lines && (c == '\n' || c == '\t'))
        mk_buf_addc(out, (char)c);
    else if (!lines && (c == '\n' || c == '\t' || c == '\r'))
        add_picture(out, c);
    else if (!lines || c != '\r')
        mk_html_escape(out, is_hidden_char(c) ? MK_UTF8_REPLACEMENT : bytes);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '&' && c != '<' && c != '>' && c != '"' && c != '\'';
}

static size_t count_plain(struct mk_str text)
{
    size_t n = 0;
    while (n < text.len && is_plain((unsigned char)text.p[n]))
        n++;
    return n;
}

void text_html(struct mk_buf *out, struct mk_str text, bool lines)
{
    while (text.len) {
        size_t n = count_plain(text);
        mk_buf_add(out, text.p, n);
        text = mk_str_after(text, n);
        if (text.len)
            add_char(out, mk_utf8_next(&text), lines);
    }
}

/* ── URIs ── */

static bool is_unreserved(char c)
{
    return mk_is_name_byte(c, "-._~");
}

void text_uri(struct mk_buf *out, struct mk_str bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.p[i];
        char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
        if (is_unreserved((char)c))
            mk_buf_addc(out, (char)c);
        else
            mk_buf_add(out, escape, sizeof(escape));
    }
}

/* ── numbers and dates ── */

static struct mk_str get_length(const char *storage, int len)
{
    return mk_str(storage, len < 0 ? 0 : len < TEXT_BYTES ? (size_t)len : TEXT_BYTES - 1);
}

struct mk_str text_number(char *storage, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            storage[at++] = ',';
        storage[at++] = digits[i];
    }
    return get_length(storage, at);
}

struct mk_str text_exact_size(char *storage, uint64_t bytes)
{
    struct mk_str number = text_number(storage, bytes);
    int len = snprintf(storage + number.len, TEXT_BYTES - number.len, bytes == 1 ? " byte" : " bytes");
    return get_length(storage, (int)number.len + len);
}

struct mk_str text_size(char *storage, uint64_t bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    unsigned unit = 0;
    uint64_t rest = 0;
    while (bytes >= 1024) {
        rest = bytes % 1024;
        bytes /= 1024;
        unit++;
    }
    uint64_t tenths = bytes * 10 + (rest * 10 + 512) / 1024;
    if (unit && tenths < 100)
        return get_length(storage, snprintf(storage, TEXT_BYTES, "%u.%u %s", (unsigned)(tenths / 10),
                                            (unsigned)(tenths % 10), units[unit]));
    uint64_t whole = unit ? (tenths + 5) / 10 : bytes;
    if (whole == 1024)
        return get_length(storage, snprintf(storage, TEXT_BYTES, "1.0 %s", units[unit + 1]));
    return get_length(storage, snprintf(storage, TEXT_BYTES, "%u %s", (unsigned)whole, units[unit]));
}

struct mk_str text_time(char *storage, int64_t seconds)
{
    size_t n = mk_time_iso(seconds, storage);
    if (n)
        storage[sizeof("2026-11-22") - 1] = ' ';
    return mk_str(storage, n ? sizeof("2026-11-22 19:45") - 1 : 0);
}

struct mk_str text_iso_time(char *storage, int64_t seconds)
{
    size_t n = mk_time_iso(seconds, storage);
    if (n)
        storage[n++] = 'Z';
    return mk_str(storage, n);
}
