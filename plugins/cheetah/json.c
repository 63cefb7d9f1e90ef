// SPDX-License-Identifier: Apache-2.0
/*
 * Writes JSON (json.h).
 */
#include "json.h"

#include <monkey/escape.h>

#include <inttypes.h>
#include <stdio.h>

void json_begin(struct mk_buf *out)
{
    mk_buf_addc(out, '{');
}

void json_end(struct mk_buf *out)
{
    mk_buf_adds(out, MK_STR("}\n"));
}

static void add_string(struct mk_buf *out, struct mk_str s)
{
    mk_buf_addc(out, '"');
    mk_json_escape(out, s);
    mk_buf_addc(out, '"');
}

static void add_key(struct mk_buf *out, const char *key)
{
    if (out->len && out->data[out->len - 1] != '{')
        mk_buf_addc(out, ',');
    mk_buf_addf(out, "\"%s\":", key);
}

void json_string(struct mk_buf *out, const char *key, struct mk_str value)
{
    add_key(out, key);
    add_string(out, value);
}

void json_text(struct mk_buf *out, const char *key, const char *value)
{
    json_string(out, key, mk_str_c(value));
}

void json_number(struct mk_buf *out, const char *key, int64_t value)
{
    add_key(out, key);
    mk_buf_addf(out, "%" PRId64, value);
}

void json_bool(struct mk_buf *out, const char *key, bool value)
{
    add_key(out, key);
    mk_buf_adds(out, value ? MK_STR("true") : MK_STR("false"));
}

void json_address(struct mk_buf *out, const char *key, const struct mk_address *value)
{
    char storage[80];
    struct mk_buf text;
    mk_buf_init_fixed(&text, storage, sizeof(storage));
    mk_address_print(value, &text);
    json_string(out, key, mk_buf_str(&text));
}

void json_sentence(struct mk_buf *out, const char *key, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    json_string(out, key, mk_str(text, n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1));
}
