// SPDX-License-Identifier: Apache-2.0
/*
 * Writes JSON (<monkey/kit/json.h>).
 */
#include <monkey/kit/json.h>

#include <monkey/base/escape.h>

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static void write_string(struct mk_buf *out, struct mk_str text)
{
    mk_buf_addc(out, '"');
    mk_json_escape(out, text);
    mk_buf_addc(out, '"');
}

static void write_comma(struct mk_buf *out)
{
    if (out->len && !memchr("{[: \n", out->data[out->len - 1], 5))
        mk_buf_addc(out, ',');
}

static void begin_value(struct mk_buf *out, const char *key)
{
    if (key)
        mk_json_key(out, mk_str_c(key));
    else
        write_comma(out);
}

void mk_json_key(struct mk_buf *out, struct mk_str key)
{
    write_comma(out);
    write_string(out, key);
    mk_buf_addc(out, ':');
}

void mk_json_open(struct mk_buf *out, const char *key, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    begin_value(out, key);
    mk_buf_addc(out, bracket);
}

void mk_json_close(struct mk_buf *out, char bracket)
{
    assert(bracket == '}' || bracket == ']');
    mk_buf_addc(out, bracket);
}

void mk_json_close_line(struct mk_buf *out)
{
    mk_buf_adds(out, MK_STR("}\n"));
}

void mk_json_str(struct mk_buf *out, const char *key, struct mk_str value)
{
    begin_value(out, key);
    write_string(out, value);
}

void mk_json_cstr(struct mk_buf *out, const char *key, const char *value)
{
    mk_json_str(out, key, mk_str_c(value));
}

void mk_json_number(struct mk_buf *out, const char *key, int64_t value)
{
    begin_value(out, key);
    mk_buf_addf(out, "%" PRId64, value);
}

void mk_json_bool(struct mk_buf *out, const char *key, bool value)
{
    begin_value(out, key);
    mk_buf_adds(out, value ? MK_STR("true") : MK_STR("false"));
}

void mk_json_null(struct mk_buf *out, const char *key)
{
    begin_value(out, key);
    mk_buf_adds(out, MK_STR("null"));
}

void mk_json_real(struct mk_buf *out, const char *key, double value)
{
    if (!isfinite(value) || fabs(value) > 1e15) {
        mk_json_null(out, key);
        return;
    }
    MK_BUF_ON_STACK(digits, 64);
    mk_buf_addf(&digits, "%.6f", value);
    while (digits.len && digits.data[digits.len - 1] == '0')
        digits.len--;
    digits.len -= digits.len && digits.data[digits.len - 1] == '.';
    begin_value(out, key);
    mk_buf_adds(out, mk_buf_str(&digits));
}

void mk_json_address(struct mk_buf *out, const char *key, const struct mk_address *value)
{
    MK_BUF_ON_STACK(text, 80);
    mk_address_print(value, &text);
    mk_json_str(out, key, mk_buf_str(&text));
}

void mk_json_format(struct mk_buf *out, const char *key, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    mk_json_str(out, key, mk_str(text, n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1));
}
