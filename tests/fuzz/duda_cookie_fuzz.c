// SPDX-License-Identifier: Apache-2.0
/*
 * Cookies: the first line of the input is a Cookie header, the others are the fields of a cookie to set. What is set
 * can be read again, and never has a byte that ends a header or an attribute.
 */
#include "duda/core/cookie.h"

#include <stdlib.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

static void check_header(struct mk_str header)
{
    struct mk_str rest = header, name, value, found;
    while (cookie_cut(&rest, &name, &value)) {
        CHECK(name.len && !memchr(name.p, ';', name.len) && !memchr(name.p, '=', name.len));
        CHECK(!value.len || !memchr(value.p, ';', value.len));
        CHECK(name.p > header.p - 1 && value.p + value.len <= header.p + header.len);
        CHECK(cookie_find(header, name, &found));
    }
    CHECK(rest.len == 0);
}

/* The pair of a Set-Cookie, as a browser sends it back. */
static void check_written(const struct duda_cookie *c)
{
    char text[COOKIE_BYTES_MAX];
    struct mk_buf out;
    struct mk_str value;
    mk_buf_init_fixed(&out, text, sizeof(text));
    if (cookie_write(&out, c, "/svc") < 0) {
        CHECK(!out.len && !out.err);
        return;
    }
    for (size_t i = 0; i < out.len; i++)
        CHECK(text[i] >= ' ' && text[i] < 0x7f);
    const char *end = memchr(text, ';', out.len);
    CHECK(end && cookie_find(mk_str(text, (size_t)(end - text)), mk_str_c(c->name), &value));
    CHECK(mk_str_eq(value, mk_str_c(c->value)));
}

static void check_old(const struct duda_cookie *c)
{
    char text[COOKIE_BYTES_MAX];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    if (cookie_write_old(&out, mk_str_c(c->name), mk_str_c(c->value), "/svc", c->expires) < 0)
        return;
    for (size_t i = 0; i < out.len; i++)
        CHECK((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

/* Cuts a line off the text, in place. */
static char *cut_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');
    *rest = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = text;
    CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check_header(mk_str_c(cut_line(&rest)));
    const char *name = cut_line(&rest), *value = cut_line(&rest), *path = cut_line(&rest), *domain = cut_line(&rest);
    const unsigned char flags = (unsigned char)*rest;
    struct duda_cookie c = {.name = name,
                            .value = value,
                            .path = *path ? path : NULL,
                            .domain = *domain ? domain : NULL,
                            .secure = flags & 1,
                            .http_only = flags & 2,
                            .same_site = (enum duda_same_site)(flags >> 2 & 3),
                            .max_age = flags & 16,
                            .expires = flags & 32 ? 784111777 : 0};
    check_written(&c);
    check_old(&c);
    free(text);
    return 0;
}
