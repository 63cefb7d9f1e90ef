// SPDX-License-Identifier: Apache-2.0
/*
 * Host names, one a line: those of hosts up to an empty line, then those that are asked for. Each answer
 * must be the one that a search through all names gives.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "server/generation/vhost.h"

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

enum { HOSTS_MAX = 64 };

static char hosts[HOSTS_MAX];
static struct mk_str names[HOSTS_MAX]; /* without the trailing dot; empty: refused */

static struct mk_str cut_line(struct mk_str *rest)
{
    const char *end = rest->len ? memchr(rest->p, '\n', rest->len) : NULL;
    struct mk_str line = mk_str(rest->p, end ? (size_t)(end - rest->p) : rest->len);
    *rest = mk_str(line.p + line.len + !!end, rest->len - line.len - !!end);
    return line;
}

static struct mk_str without_dot(struct mk_str s)
{
    bool dot = s.len && s.p[0] != '[' && s.p[s.len - 1] == '.';
    return mk_str(s.p, s.len - dot);
}

static bool read_v6(struct mk_str s, struct in6_addr *ret)
{
    char text[64];
    if (s.len < 2 || s.len >= sizeof(text) || s.p[0] != '[' || s.p[s.len - 1] != ']')
        return false;
    memcpy(text, s.p + 1, s.len - 2);
    text[s.len - 2] = '\0';
    return strlen(text) == s.len - 2 && inet_pton(AF_INET6, text, ret) == 1;
}

static bool is_same(struct mk_str a, struct mk_str b)
{
    struct in6_addr x, y;
    if (read_v6(a, &x))
        return read_v6(b, &y) && memcmp(&x, &y, sizeof(x)) == 0;
    return a.len && a.p[0] != '[' && mk_str_ieq(a, b);
}

/* How well the n-th name fits: its length when it is a wildcard for `s`, more when it is `s` itself, else 0. */
static size_t fit(size_t n, struct mk_str s)
{
    struct mk_str name = names[n];
    bool wild = mk_str_starts(name, MK_STR("*."));
    if (!wild)
        return is_same(name, s) ? 1000 : 0;
    size_t tail = name.len - 1;
    bool below = s.len > tail && s.len <= MK__VHOST_NAME_MAX && s.p[0] != '.' && s.p[0] != '[';
    return below && mk_str_ieq(mk_str(s.p + s.len - tail, tail), mk_str(name.p + 1, tail)) ? tail : 0;
}

static void check_answer(const struct mk__vhosts *t, struct mk_str asked)
{
    size_t best = 0, host = 0;
    for (size_t i = 0; i < HOSTS_MAX; i++)
        if (fit(i, without_dot(asked)) > best) {
            best = fit(i, without_dot(asked));
            host = i;
        }
    CHECK(mk__vhost_find(t, asked) == (best ? (struct mk_host *)&hosts[host] : NULL));
}

static void add_name(struct mk__vhosts *t, size_t n, struct mk_str name)
{
    const struct mk__vhost *first = NULL;
    const char *reason = NULL;
    int err = mk__vhost_add(t, name, (struct mk_host *)&hosts[n], (uint32_t)n, &reason, &first);
    CHECK(err == 0 || (err == -EINVAL && reason) || (err == -EEXIST && first->nth < n));
    names[n] = err == 0 ? without_dot(name) : MK_STR_NONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_str rest = mk_str((const char *)data, size), line;
    struct mk__vhosts table;
    struct mk_arena arena;

    memset(names, 0, sizeof(names));
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    CHECK(mk__vhost_init(&table, &arena, HOSTS_MAX) == 0);
    for (size_t n = 0; n < HOSTS_MAX && (line = cut_line(&rest)).len; n++)
        add_name(&table, n, line);
    while (rest.len)
        check_answer(&table, cut_line(&rest));
    for (size_t n = 0; n < HOSTS_MAX; n++)
        if (names[n].len)
            check_answer(&table, names[n]);
    mk_arena_release(&arena);
    return 0;
}
