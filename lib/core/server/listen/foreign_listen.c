// SPDX-License-Identifier: Apache-2.0
/*
 * URLs, lists and options of other servers in Listen lines, as tables (server/listen/foreign_listen.h).
 */
#include "server/listen/foreign_listen.h"

/* The schemes of URLs, the port that each means, and what follows the address in a Listen line. */
static const struct {
    struct mk_str start;
    const char *port, *option;
} schemes[] = {{MK_STR("http://"), "80", ""}, {MK_STR("https://"), "443", " tls"}};

static struct mk_str truncate_at(struct mk_str s, char end)
{
    const char *at = s.len ? memchr(s.p, end, s.len) : NULL;
    return at ? mk_str(s.p, (size_t)(at - s.p)) : s;
}

/* Returns whether a host has a port after it; an IPv6 address is in brackets. */
static bool has_port(struct mk_str host)
{
    const char *colon = host.len ? memrchr(host.p, ':', host.len) : NULL;
    return colon && host.p[host.len - 1] != ']';
}

static bool find_url(struct mk_str address, struct mk_buf *error)
{
    for (size_t i = 0; i < MK_COUNT_OF(schemes); i++) {
        struct mk_str start = schemes[i].start;
        if (!mk_str_istarts(address, start) || address.len == start.len)
            continue;
        struct mk_str host = truncate_at(mk_str(address.p + start.len, address.len - start.len), '/');
        mk_buf_addf(error, "an address is not a URL: write \"Listen %.*s%s%s%s\"", MK_STR_ARG(host),
                    has_port(host) ? "" : ":", has_port(host) ? "" : schemes[i].port, schemes[i].option);
        return true;
    }
    return false;
}

bool mk__foreign_listen_find(struct mk_str address, struct mk_buf *error)
{
    bool list = address.len && address.p[address.len - 1] == ',';
    bool port = address.len > 1 && address.p[0] == ':' && address.p[1] != ':';
    if (find_url(address, error))
        return true;
    if (list)
        mk_buf_addf(error, "one address a line, without a comma: write a line Listen for each");
    else if (port)
        mk_buf_addf(error, "a port on all addresses has no colon: write \"Listen %.*s\"", (int)address.len - 1,
                    address.p + 1);
    return list || port;
}

static const struct {
    struct mk_str word;
    const char *here;
} options[] = {
    {MK_STR("default_server"), "the host in sites/default is the default: leave the word out"},
    {MK_STR("default"), "the host in sites/default is the default: leave the word out"},
    {MK_STR("http2"), "leave the word out: [HTTP2] says whether HTTP/2 is spoken"},
    {MK_STR("spdy"), "leave the word out: [HTTP2] says whether HTTP/2 is spoken"},
    {MK_STR("quic"), "there is no HTTP/3: leave the word out"},
    {MK_STR("reuseport"), "leave the word out: Scheduler reuseport is the default"},
    {MK_STR("proxy_protocol"), "the word is proxy here"},
    {MK_STR("deferred"), "leave the word out: DeferAccept is on"},
    {MK_STR("http"), "leave the word out: a listener without tls speaks http"},
};

bool mk__foreign_listen_find_option(struct mk_str word, struct mk_buf *error)
{
    word = truncate_at(word, ';');
    for (size_t i = 0; i < MK_COUNT_OF(options); i++)
        if (mk_str_ieq(word, options[i].word)) {
            mk_buf_addf(error, "%s", options[i].here);
            return true;
        }
    if (!mk_str_starts(word, MK_STR("//")))
        return false;
    mk_buf_addf(error, "a comment begins with #, not with //");
    return true;
}
