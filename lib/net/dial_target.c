// SPDX-License-Identifier: Apache-2.0
/*
 * Parses the targets of dials (monkey/dial.h). Only the syntax is checked: names are looked up when they are dialled.
 */
#include <monkey/dial.h>

#include "net/addr.h"

#include <errno.h>

enum { NAME_BYTES_MAX = 253, LABEL_BYTES_MAX = 63 }; /* RFC 1035 section 2.3.4, without the length bytes */

struct dial_target {
    struct mk_dial_target public;
    struct mk__addr addr;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_byte(char c)
{
    return is_digit(c) || (mk_lower(c) >= 'a' && mk_lower(c) <= 'z') || c == '-' || c == '_';
}

/*
 * Returns whether `s` is a name. A last label of digits only is an error: the resolver would take "127.1" for an
 * address.
 */
static bool is_name(struct mk_str s)
{
    size_t label = 0, digits = 0;
    if (s.len && s.p[s.len - 1] == '.')
        s.len--;
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] == '.' && label) {
            label = digits = 0;
            continue;
        }
        if (!is_name_byte(s.p[i]) || (s.p[i] == '-' && !label) || ++label > LABEL_BYTES_MAX)
            return false;
        digits += is_digit(s.p[i]);
    }
    return s.len <= NAME_BYTES_MAX && label > digits;
}

/* Returns NULL or a phrase that says what is wrong. */
static const char *read_host(struct mk_dial_target *t, struct mk__addr *addr)
{
    if (mk__addr_parse_host(t->host, addr) == 0) {
        mk__addr_set_port(addr, t->port);
        t->addr = addr;
    } else if (t->host.len && t->host.p[0] == '[') {
        return "there must be an IPv6 address in the brackets: [::1]:80";
    } else if (!is_name(t->host)) {
        return "this is neither an address nor a name: 192.0.2.1:80, [2001:db8::1]:80, example.org:80 or unix:/path";
    }
    if (t->host.p[0] == '[')
        t->host = mk_str(t->host.p + 1, t->host.len - 2);
    return NULL;
}

static const char *read_tcp(struct mk_dial_target *t, struct mk__addr *addr, int default_port)
{
    struct mk_str text = t->text;
    const char *bracket = text.len && text.p[0] == '[' ? memchr(text.p, ']', text.len) : NULL;
    const char *from = bracket ? bracket : text.p, *end = text.p + text.len;
    const char *colon = text.len ? memchr(from, ':', (size_t)(end - from)) : NULL;
    uint64_t port = (uint64_t)default_port;
    if (!colon && default_port == MK_DIAL_PORT_REQUIRED)
        return "the port is missing: example.org:80";
    if (colon && !bracket && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
        return "an IPv6 address needs brackets: [::1]:80";
    if (colon && (!mk_str_u64(mk_str(colon + 1, (size_t)(end - colon - 1)), UINT16_MAX, &port) || port == 0))
        return "the port must be a number from 1 to 65535";
    t->port = (uint16_t)port;
    t->host = mk_str(text.p, (size_t)((colon ? colon : end) - text.p));
    return read_host(t, addr);
}

static const char *read_target(struct mk_dial_target *t, struct mk__addr *addr, int default_port)
{
    const char *wrong = NULL;
    if (!mk_str_starts(t->text, MK_STR("unix:")))
        return read_tcp(t, addr, default_port);
    if (mk__addr_parse(t->text, addr, &wrong) < 0)
        return wrong;
    t->host = mk_str(t->text.p + 5, t->text.len - 5);
    t->addr = addr;
    return NULL;
}

int mk_dial_target_parse(struct mk_arena *arena, struct mk_str text, int default_port,
                         const struct mk_dial_target **ret_target, const char **ret_error)
{
    struct dial_target *target = mk_arena_zalloc(arena, sizeof(*target));
    struct mk_str copy = mk_arena_dup(arena, text);
    if (!target || !copy.p) {
        *ret_error = "out of memory";
        return -ENOMEM;
    }
    target->public.text = copy;
    const char *wrong = read_target(&target->public, &target->addr, default_port);
    if (wrong) {
        *ret_error = wrong;
        return -EINVAL;
    }
    *ret_target = &target->public;
    return 0;
}
