// SPDX-License-Identifier: Apache-2.0
/*
 * The cookie of Balance Sticky: the first line of the input is a Cookie header, the second one the value of
 * StickyCookie, and the rest is a secret. A request gets the server whose token it has, byte by byte, and no other one;
 * a cookie that the directive takes can be set and is found again.
 */
#include "plugins/upstream/groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SERVERS = 4, WORDS_MAX = 16 };

static struct server_line lines[SERVERS];
static struct upstream_conf conf = {.name = MK_STR_INIT("g"), .servers = {lines, SERVERS}, .balance = UPSTREAM_STICKY};
static struct mk_upstream_group *group;

/* The group of the whole run. */
static void make_group(void)
{
    static const char *const server_names[SERVERS] = {"127.0.0.1:1", "127.0.0.1:2", "[::1]:1", "unix:/a"};
    static struct names names;
    for (unsigned i = 0; i < SERVERS; i++)
        lines[i] = (struct server_line){.name = mk_str_c(server_names[i]), .weight = 1};
    names_init(&names);
    group = group_make(&conf, &names);
    assert(group);
}

static const char *get_token(unsigned n)
{
    return group_members(group)->items[n].token;
}

static void check_found(struct mk_str value)
{
    struct server *found = group_find_sticky(group, value), *expected = NULL;
    for (unsigned i = 0; i < SERVERS; i++)
        if (value.len == STICKY_TOKEN_BYTES && memcmp(get_token(i), value.p, value.len) == 0)
            expected = group_members(group)->items[i].server;
    assert(found == expected);
}

/* All tokens of a key are words of a cookie, and differ. */
static void check_tokens(void)
{
    for (unsigned i = 0; i < SERVERS; i++) {
        struct mk_str token = mk_str(get_token(i), STICKY_TOKEN_BYTES);
        for (size_t k = 0; k < token.len; k++)
            assert(memchr("0123456789abcdef", token.p[k], 16));
        assert(group_find_sticky(group, token) == group_members(group)->items[i].server);
        assert(!group_find_sticky(group, mk_str(token.p, token.len - 1)));
    }
}

/* As a browser sends it back. */
static void check_cookie(struct mk_cookie *cookie)
{
    char text[MK_COOKIE_BYTES_MAX];
    struct mk_buf out;
    cookie->value = mk_str(get_token(0), STICKY_TOKEN_BYTES);
    mk_buf_init_fixed(&out, text, sizeof(text));
    if (mk_cookie_write(&out, cookie) < 0) /* the value is longer than the one that the directive was tried with */
        return;
    const char *end = memchr(text, ';', out.len);
    assert(!memchr(text, '\r', out.len) && !memchr(text, '\n', out.len));
    struct mk_str pair = mk_str(text, end ? (size_t)(end - text) : out.len);
    assert(group_find_sticky(group, mk_cookie_find(pair, cookie->name)) == group_members(group)->items[0].server);
}

static void check_directive(struct mk_str text)
{
    char storage[1024];
    struct mk_arena arena;
    struct mk_buf error;
    struct mk_cookie cookie;
    struct mk_str words[WORDS_MAX];
    struct mk_conf_value value = {.text = text, .words = words};
    for (struct mk_str rest = text; rest.len && value.n < WORDS_MAX;) {
        const char *end = memchr(rest.p, ' ', rest.len);
        size_t n = end ? (size_t)(end - rest.p) : rest.len;
        words[value.n++] = mk_str(rest.p, n);
        rest = mk_str(rest.p + n + (end != NULL), rest.len - n - (end != NULL));
    }
    if (!value.n) /* the configuration passes on no value without words */
        return;
    mk_arena_init(&arena, NULL, 65536, NULL, 0);
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int err = sticky_parse_cookie(&value, &cookie, &arena, &error);
    assert((err == 0 && !error.len) || (err < 0 && (error.len || error.err || err == -ENOMEM)));
    if (err == 0)
        check_cookie(&cookie);
    mk_arena_release(&arena);
}

/* Cuts a line off. */
static struct mk_str cut_line(struct mk_str *rest)
{
    const char *end = rest->len ? memchr(rest->p, '\n', rest->len) : NULL;
    size_t n = end ? (size_t)(end - rest->p) : rest->len;
    struct mk_str line = mk_str(rest->p, n);
    *rest = mk_str(rest->p + n + (end != NULL), rest->len - n - (end != NULL));
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t key[2];
    struct mk_str rest = mk_str((const char *)data, size), header = cut_line(&rest), directive = cut_line(&rest);
    struct mk_str name, value;
    if (!group)
        make_group();
    sticky_derive_key(rest, key);
    group_make_tokens(group, key);
    check_tokens();
    check_found(mk_cookie_find(header, MK_STR("server")));
    while (mk_cookie_next(&header, &name, &value))
        check_found(value);
    check_directive(directive);
    return 0;
}
