// SPDX-License-Identifier: Apache-2.0
/*
 * Writes UTF-8 and JSON (text.h).
 */
#include "text.h"

#include <monkey/escape.h>
#include <monkey/utf8.h>

#include <math.h>

/* ── UTF-8 ── */

struct mk_str text_next(struct mk_str *rest)
{
    size_t n = mk_utf8_length(*rest);
    struct mk_str character = n ? mk_str(rest->p, n) : MK_UTF8_REPLACEMENT;
    n += !n;
    *rest = mk_str(rest->p + n, rest->len - n);
    return character;
}

void text_write(struct mk_buf *out, struct mk_str text)
{
    while (text.len)
        mk_buf_adds(out, text_next(&text));
}

/* ── JSON ── */

static void write_string(struct mk_buf *out, struct mk_str text)
{
    mk_buf_addc(out, '"');
    mk_json_escape(out, text);
    mk_buf_addc(out, '"');
}

static void begin_value(struct json *j, struct mk_str key)
{
    if (j->follows)
        mk_buf_addc(j->out, ',');
    j->follows = true;
    if (key.p) {
        write_string(j->out, key);
        mk_buf_addc(j->out, ':');
    }
}

void json_open(struct json *j, const char *key, char bracket)
{
    begin_value(j, mk_str_c(key));
    mk_buf_addc(j->out, bracket);
    j->follows = false;
}

void json_close(struct json *j, char bracket)
{
    mk_buf_addc(j->out, bracket);
    j->follows = true;
}

void json_text(struct json *j, const char *key, struct mk_str value)
{
    begin_value(j, mk_str_c(key));
    write_string(j->out, value);
}

void json_number_at(struct json *j, struct mk_str key, int64_t value)
{
    begin_value(j, key);
    mk_buf_addf(j->out, "%lld", (long long)value);
}

void json_number(struct json *j, const char *key, int64_t value)
{
    json_number_at(j, mk_str_c(key), value);
}

void json_real(struct json *j, const char *key, double value)
{
    char text[64];
    struct mk_buf digits;
    if (!isfinite(value) || fabs(value) > 1e15) {
        json_null(j, key);
        return;
    }
    mk_buf_init_fixed(&digits, text, sizeof(text));
    mk_buf_addf(&digits, "%.6f", value);
    while (digits.len && digits.data[digits.len - 1] == '0')
        digits.len--;
    digits.len -= digits.len && digits.data[digits.len - 1] == '.';
    begin_value(j, mk_str_c(key));
    mk_buf_adds(j->out, mk_buf_str(&digits));
}

void json_bool(struct json *j, const char *key, bool value)
{
    begin_value(j, mk_str_c(key));
    mk_buf_adds(j->out, value ? MK_STR("true") : MK_STR("false"));
}

void json_null(struct json *j, const char *key)
{
    begin_value(j, mk_str_c(key));
    mk_buf_adds(j->out, MK_STR("null"));
}
