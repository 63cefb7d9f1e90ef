// SPDX-License-Identifier: Apache-2.0
/*
 * Parses the fields of http/message/forwarded.h. Lists are read from their right end, where trusted proxies have
 * written: what a client has written to the left of that, an opening quote for example, cannot change how they are
 * parsed.
 */
#include "http/message/forwarded.h"

#include <assert.h>

/* Tells whether an odd number of backslashes precedes the byte at `i`. */
static bool is_escaped(struct mk_str s, size_t i)
{
    size_t n = 0;
    while (n < i && s.p[i - n - 1] == '\\')
        n++;
    return n % 2;
}

/* Removes and returns what follows the last `mark`, trimmed; without a mark all of `rest`. */
static struct mk_str split_last(struct mk_str *rest, char mark, bool with_quotes)
{
    size_t i = rest->len;
    bool quoted = false;
    while (i && (quoted || rest->p[i - 1] != mark)) {
        i--;
        if (with_quotes && rest->p[i] == '"' && !(quoted && is_escaped(*rest, i)))
            quoted = !quoted;
    }
    struct mk_str last = mk_str_trim(mk_str_after(*rest, i));
    rest->len = i ? i - 1 : 0;
    return last;
}

/* Removes an obfuscated port, which is of no use: "192.0.2.1:_web" (RFC 7239 section 6.3). */
static struct mk_str strip_obfuscated_port(struct mk_str node)
{
    const char *colon = node.len ? memrchr(node.p, ':', node.len) : NULL;
    if (colon && colon > node.p && colon + 1 < node.p + node.len && colon[1] == '_')
        node.len = (size_t)(colon - node.p);
    return node;
}

static void add_hop(struct mk__forwarded *f, struct mk_str node)
{
    struct mk_address address;
    if (mk_address_parse(strip_obfuscated_port(node), &address) < 0) {
        f->ended = true;
        return;
    }
    f->client = address;
    f->ended = !mk_networks_contain(f->trusted, &address);
}

static bool can_add_hop(struct mk__forwarded *f)
{
    assert(f->trusted && f->hops <= MK__FORWARDED_HOPS_MAX);
    f->ended |= f->hops == MK__FORWARDED_HOPS_MAX;
    f->hops += !f->ended;
    return !f->ended;
}

void mk__forwarded_read_x_for(struct mk__forwarded *f, struct mk_str line)
{
    while (line.len && can_add_hop(f)) {
        struct mk_str node = split_last(&line, ',', false);
        if (node.len)
            add_hop(f, node);
    }
}

/* Some proxies name the scheme of WebSocket in its handshake, which is a request of HTTP (RFC 6455 section 3). */
static void set_scheme(struct mk__forwarded *f, struct mk_str scheme)
{
    static const struct {
        struct mk_str name;
        bool is_https;
    } rows[] = {
        {MK_STR_INIT("https"), true},
        {MK_STR_INIT("http"), false},
        {MK_STR_INIT("wss"), true},
        {MK_STR_INIT("ws"), false},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (mk_str_ieq(scheme, rows[i].name))
            f->is_https = rows[i].is_https;
}

void mk__forwarded_read_x_proto(struct mk__forwarded *f, struct mk_str line)
{
    while (line.len && (f->schemes < f->hops || f->schemes == 0)) {
        struct mk_str scheme = split_last(&line, ',', false);
        f->schemes += scheme.len > 0;
        set_scheme(f, scheme);
    }
}

/* ── Forwarded: name=value pairs (RFC 7239 section 4) ── */

/* No valid value contains a quote or a backslash, so escapes need not be decoded. */
static struct mk_str unquote_value(struct mk_str value)
{
    bool quoted = value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"';
    return quoted ? mk_str(value.p + 1, value.len - 2) : value;
}

/* Reads an element that a trusted proxy has written; its scheme is trusted too. */
static void read_forwarded_element(struct mk__forwarded *f, struct mk_str element)
{
    struct mk_str node = MK_STR("");
    while (element.len) {
        struct mk_str pair = split_last(&element, ';', true);
        const char *equals = pair.len ? memchr(pair.p, '=', pair.len) : NULL;
        if (!equals)
            continue;
        struct mk_str name = mk_str(pair.p, (size_t)(equals - pair.p));
        struct mk_str value = unquote_value(mk_str(equals + 1, pair.len - name.len - 1));
        if (mk_str_ieq(name, MK_STR("for")))
            node = value;
        else if (mk_str_ieq(name, MK_STR("proto")))
            set_scheme(f, value);
    }
    add_hop(f, node);
}

void mk__forwarded_read(struct mk__forwarded *f, struct mk_str line)
{
    while (line.len && can_add_hop(f)) {
        struct mk_str element = split_last(&line, ',', true);
        if (element.len)
            read_forwarded_element(f, element);
    }
}
