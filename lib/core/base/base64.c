// SPDX-License-Identifier: Apache-2.0
/*
 * Encodes and decodes base64 (<monkey/base/base64.h>): four digits of 6 bits for three bytes.
 */
#include <monkey/base/base64.h>

#include <errno.h>
#include <stdint.h>

#define LETTERS_AND_NUMBERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const struct form {
    char digits[65];
    bool padded;
} forms[] = {
    [MK_BASE64] = {LETTERS_AND_NUMBERS "+/", true},
    [MK_BASE64_URL] = {LETTERS_AND_NUMBERS "-_", false},
};

/* ── encoding ── */

/* Encodes 1 to 3 bytes. Returns where the digits end; a group is padded to 4 if the form says so. */
static char *encode_group(char *to, const uint8_t *p, size_t n, const struct form *form)
{
    uint32_t bits = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
    for (size_t i = 0; i <= n; i++)
        *to++ = form->digits[bits >> (18 - 6 * i) & 63];
    for (size_t i = n; form->padded && i < 3; i++)
        *to++ = '=';
    return to;
}

void mk_base64_encode(struct mk_buf *out, const void *data, size_t len, enum mk_base64_form form)
{
    const uint8_t *p = data;
    assert(data || !len);
    if (len == 0)
        return;
    if (len > SIZE_MAX / 2 || mk_buf_reserve(out, (len + 2) / 3 * 4) < 0) {
        out->err = out->err ? out->err : -ENOBUFS;
        return;
    }
    char *to = out->data + out->len;
    for (; len > 3; len -= 3, p += 3)
        to = encode_group(to, p, 3, &forms[form]);
    to = encode_group(to, p, len, &forms[form]);
    out->len = (size_t)(to - out->data);
}

/* ── decoding ── */

/* Returns the value of a digit, or -1. */
static int find_value(char c, const struct form *form)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == form->digits[62] ? 62 : c == form->digits[63] ? 63 : -1;
}

/* Decodes a group of 2 to 4 digits to n - 1 bytes. Returns where they end, or NULL. */
static char *decode_group(char *to, const char *p, size_t n, const struct form *form)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        int value = find_value(p[i], form);
        if (value < 0)
            return NULL;
        bits |= (uint32_t)value << (18 - 6 * i);
    }
    for (size_t i = 1; i < n; i++, bits = bits << 8 & 0xffffff)
        *to++ = (char)(bits >> 16);
    return bits ? NULL : to; /* unused bits */
}

static struct mk_str trim_padding(struct mk_str text)
{
    for (int i = 0; i < 2 && text.len && text.p[text.len - 1] == '='; i++)
        text.len--;
    return text;
}

int mk_base64_decode(struct mk_buf *out, struct mk_str text, enum mk_base64_form form)
{
    bool padded = forms[form].padded;
    if (padded && text.len % 4)
        return -EINVAL;
    if (padded)
        text = trim_padding(text);
    if (text.len % 4 == 1)
        return -EINVAL;
    if (text.len == 0 || mk_buf_reserve(out, text.len / 4 * 3 + text.len % 4) < 0)
        return out->err;
    char *to = out->data + out->len;
    while (text.len) {
        size_t n = text.len < 4 ? text.len : 4;
        to = decode_group(to, text.p, n, &forms[form]);
        if (!to)
            return -EINVAL;
        text.p += n;
        text.len -= n;
    }
    out->len = (size_t)(to - out->data);
    return 0;
}
