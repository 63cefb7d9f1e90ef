// SPDX-License-Identifier: Apache-2.0
/*
 * The package base64 (<duda/packages/base64/base64.h>): the functions of <monkey/base/base64.h>, with results on the
 * heap of services.
 */
#include <duda/mem.h>
#include <duda/packages/base64/base64.h>
#include <monkey/base/base64.h>

#include <string.h>

/* Sets the length. Returns the memory with a NUL after it, or NULL after an error, for which it is freed. */
static char *finish_text(struct mk_buf *out, bool right, size_t *ret_len)
{
    bool fine = right && !out->err;
    if (ret_len)
        *ret_len = fine ? out->len : 0;
    if (fine)
        out->data[out->len] = '\0';
    else
        mem->free(out->data);
    return fine ? out->data : NULL;
}

/* Initializes a buffer of `size` bytes and one for a NUL. Returns whether there is memory. */
static bool open_buf(struct mk_buf *out, size_t size)
{
    char *to = mem->alloc(size + 1);
    mk_buf_init_fixed(out, to, to ? size : 0);
    return to;
}

static char *encode_form(const void *data, size_t len, size_t *ret_len, enum mk_base64_form form)
{
    struct mk_buf out = {.data = NULL};
    bool right = (data || !len) && len <= SIZE_MAX / 2 && open_buf(&out, (len + 2) / 3 * 4);
    if (right)
        mk_base64_encode(&out, data, len, form);
    return finish_text(&out, right, ret_len);
}

static char *decode_form(const char *text, size_t len, size_t *ret_len, enum mk_base64_form form)
{
    struct mk_buf out = {.data = NULL};
    bool right = (text || !len) && open_buf(&out, len / 4 * 3 + 3);
    return finish_text(&out, right && mk_base64_decode(&out, mk_str(text, len), form) == 0, ret_len);
}

static unsigned char *encode_text(const void *data, size_t len, size_t *ret_len)
{
    return (unsigned char *)encode_form(data, len, ret_len, MK_BASE64);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Returns whether there is white space in a text. */
static bool has_space(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (is_space(text[i]))
            return true;
    return false;
}

/* Copies the digits and "=" of a text, with other bytes but white space if `strict`. Returns how many they are. */
static size_t copy_digits(char *to, const char *text, size_t len, bool strict)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        bool is_wanted = strict ? !is_space(text[i]) : mk_is_name_byte(text[i], "+/") || text[i] == '=';
        if (is_wanted)
            to[n++] = text[i];
        if (!strict && is_wanted && text[i] == '=' && n % 4 == 0)
            break;
    }
    return n;
}

static char *decode_copy(const char *text, size_t len, size_t *ret_len, bool strict)
{
    char *plain = mem->alloc(len ? len : 1);
    if (!plain && ret_len)
        *ret_len = 0;
    char *data = plain ? decode_form(plain, copy_digits(plain, text, len, strict), ret_len, MK_BASE64) : NULL;
    mem->free(plain);
    return data;
}

static unsigned char *decode_text(const void *text, size_t len, size_t *ret_len)
{
    bool lines = text && has_space(text, len);
    char *data = lines ? decode_copy(text, len, ret_len, true) : decode_form(text, len, ret_len, MK_BASE64);
    return (unsigned char *)data;
}

static unsigned char *decode_old(const void *text, size_t len, size_t *ret_len)
{
    char *data = text ? decode_copy(text, len, ret_len, false) : decode_form(text, len, ret_len, MK_BASE64);
    return (unsigned char *)data;
}

static char *encode_url(const void *data, size_t len, size_t *ret_len)
{
    return encode_form(data, len, ret_len, MK_BASE64_URL);
}

static void *decode_url(const void *text, size_t len, size_t *ret_len)
{
    return decode_form(text, len, ret_len, MK_BASE64_URL);
}

static const struct duda_api_base64 table = {
    .encode = encode_text,
    .decode = decode_text,
    .encode_url = encode_url,
    .decode_url = decode_url,
    .decode_old = decode_old,
};

DUDA_PACKAGE_MAIN(base64_package, "base64", "2.0.0", &table)
