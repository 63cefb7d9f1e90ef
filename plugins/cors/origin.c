// SPDX-License-Identifier: Apache-2.0
/*
 * Writes origins as browsers do (origin.h), and says what no browser sends.
 */
#include "origin.h"

#include <monkey/base/address.h>

#include <sys/socket.h>

/* The schemes of pages that have hosts and ports; others, such as chrome-extension, are sent as they are written. */
static const struct scheme {
    struct mk_str name, sent;
    uint16_t port;
} schemes[] = {
    {MK_STR_INIT("http"), MK_STR_INIT("http"), 80},
    {MK_STR_INIT("https"), MK_STR_INIT("https"), 443},
    {MK_STR_INIT("ws"), MK_STR_INIT("http"), 80}, /* the page that opens a WebSocket has one of those above */
    {MK_STR_INIT("wss"), MK_STR_INIT("https"), 443},
};

static const struct scheme *find_scheme(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(schemes); i++)
        if (mk_str_ieq(schemes[i].name, name))
            return &schemes[i];
    return NULL;
}

static void print_lower(struct mk_str text, struct mk_buf *out)
{
    for (size_t i = 0; i < text.len; i++)
        mk_buf_addc(out, mk_lower(text.p[i]));
}

/* ── the host ── */

static bool is_number(struct mk_str label)
{
    bool hexadecimal = label.len > 1 && label.p[0] == '0' && mk_lower(label.p[1]) == 'x';
    for (size_t i = 0; i < label.len && !hexadecimal; i++)
        if (!mk_is_digit(label.p[i]))
            return false;
    return label.len;
}

/* Browsers take a name for an IPv4 address if its last label is a number. */
static bool is_v4(struct mk_str host)
{
    struct mk_str rest = mk_str_strip_end(host, "."), label = MK_STR_NONE;
    while (rest.len)
        label = mk_str_split(&rest, '.');
    return is_number(label);
}

static const char *print_address(struct mk_str host, struct mk_buf *out)
{
    struct mk_address address;
    bool brackets = host.p[0] == '[';
    if (mk_address_parse(host, &address) < 0)
        return "its address is not written as in http://192.0.2.1 or http://[2001:db8::1]";
    const uint8_t *b = address.bytes;
    if (brackets && address.family == AF_INET) { /* browsers keep what mk_address_parse() maps */
        mk_buf_addf(out, "[::ffff:%x:%x]", b[0] << 8 | b[1], b[2] << 8 | b[3]);
        return NULL;
    }
    mk_buf_adds(out, brackets ? MK_STR("[") : MK_STR(""));
    mk_address_print(&address, out);
    mk_buf_adds(out, brackets ? MK_STR("]") : MK_STR(""));
    return NULL;
}

static const char *print_host(struct mk_str host, struct mk_buf *out)
{
    if (!host.len)
        return "it has no host: write one behind the ://";
    if (host.p[0] == '[' || is_v4(host))
        return print_address(host, out);
    for (size_t i = 0; i < host.len; i++)
        if ((unsigned char)host.p[i] >= 0x80)
            return "browsers send names in ASCII: write it as its certificate has it, such as xn--bcher-kva.example";
    if (!mk_str_is_name(host, "-._~"))
        return "its host has a character that no name has";
    print_lower(host, out);
    return NULL;
}

/* ── host and port ── */

static struct mk_str cut_host(struct mk_str *rest)
{
    const char *bracket = rest->len && rest->p[0] == '[' ? memchr(rest->p, ']', rest->len) : NULL;
    struct mk_str host = bracket ? mk_str(rest->p, (size_t)(bracket - rest->p) + 1) : mk_str_until(*rest, ":");
    *rest = mk_str_after(*rest, host.len);
    return host;
}

/* `text`: empty, or a colon with what follows. */
static const char *print_port(struct mk_str text, const struct scheme *scheme, struct mk_buf *out)
{
    uint64_t port = scheme->port;
    if (text.len > 1 && (text.p[0] != ':' || !mk_str_u64(mk_str_after(text, 1), UINT16_MAX, &port) || !port))
        return "its port is no number from 1 to 65535";
    if (port != scheme->port)
        mk_buf_addf(out, ":%u", (unsigned)port);
    return NULL;
}

static const char *print_authority(struct mk_str authority, const struct scheme *scheme, struct mk_buf *out)
{
    const char *user = authority.len ? memrchr(authority.p, '@', authority.len) : NULL;
    struct mk_str rest = user ? mk_str_after(authority, (size_t)(user - authority.p) + 1) : authority;
    const char *why = print_host(cut_host(&rest), out);
    return why ? why : print_port(rest, scheme, out);
}

/* ── the whole ── */

static const char *find_fault(struct mk_str text, const char *mark)
{
    if (mk_str_until(text, ",; \t").len < text.len)
        return "it is a list in one word: write blanks between the origins, and neither commas nor quotes";
    if (memchr(text.p, '*', text.len))
        return "only a * alone, for all origins, has a meaning: write each origin";
    if (mk_str_ieq(text, MK_STR("null")))
        return "that is sent by pages of any site in a frame with the attribute sandbox: write * if all pages may";
    return mark ? NULL : "it has no scheme: write it as in https://example.org";
}

const char *origin_print(struct mk_str text, struct mk_buf *out)
{
    const char *mark = text.len ? memmem(text.p, text.len, "://", 3) : NULL;
    const char *why = text.len ? find_fault(text, mark) : "it is empty: write it as in https://example.org";
    if (why)
        return why;
    struct mk_str name = mk_str(text.p, (size_t)(mark - text.p));
    struct mk_str authority = mk_str_until(mk_str_after(text, name.len + 3), "/\\?#");
    const struct scheme *scheme = find_scheme(name);
    if (!mk_str_is_name(name, "+-."))
        return "its scheme has a character that no scheme has";
    print_lower(scheme ? scheme->sent : name, out);
    mk_buf_adds(out, MK_STR("://"));
    if (scheme)
        return print_authority(authority, scheme, out);
    mk_buf_adds(out, authority);
    return NULL;
}
