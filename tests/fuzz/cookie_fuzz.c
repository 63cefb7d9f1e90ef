// SPDX-License-Identifier: Apache-2.0
/*
 * Cookies: the first line of the input is a Cookie header, the others are the fields of a cookie to set. What is set
 * can be read again, and never has a byte that ends a header or an attribute.
 */
#include <monkey/kit/cookie.h>

#include <stdlib.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

static void check_header(struct mk_str header)
{
    struct mk_str rest = header, name, value;
    while (mk_cookie_next(&rest, &name, &value)) {
        CHECK(name.len && !memchr(name.p, ';', name.len) && !memchr(name.p, '=', name.len));
        CHECK(!value.len || !memchr(value.p, ';', value.len));
        CHECK(name.p > header.p - 1 && value.p + value.len <= header.p + header.len);
        CHECK(mk_cookie_find(header, name).p);
    }
    CHECK(rest.len == 0);
}

/* The pair of a Set-Cookie, as a browser sends it back. */
static void check_written(const struct mk_cookie *c)
{
    char text[MK_COOKIE_BYTES_MAX];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    if (mk_cookie_write(&out, c) < 0) {
        CHECK(!out.len && !out.err);
        return;
    }
    for (size_t i = 0; i < out.len; i++)
        CHECK(text[i] >= ' ' && text[i] < 0x7f);
    const char *end = memchr(text, ';', out.len);
    CHECK(end);
    struct mk_str value = mk_cookie_find(mk_str(text, (size_t)(end - text)), c->name);
    CHECK(value.p && mk_str_eq(value, c->value));
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
    struct mk_cookie c = {.name = mk_str_c(name),
                          .value = mk_str_c(value),
                          .path = mk_str_c(*path ? path : NULL),
                          .domain = mk_str_c(*domain ? domain : NULL),
                          .max_age_s = flags & 16,
                          .expires_s = flags & 32 ? 784111777 : 0,
                          .same_site = (enum mk_same_site)(flags >> 2 & 3),
                          .secure = flags & 1,
                          .http_only = flags & 2,
                          .partitioned = flags & 64};
    check_written(&c);
    free(text);
    return 0;
}
