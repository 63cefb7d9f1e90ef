// SPDX-License-Identifier: Apache-2.0
/*
 * Key, version, subprotocol and origin of the opening handshake (handshake.h).
 */
#include "handshake.h"

#include <assert.h>

#include <monkey/base/base64.h>
#include <monkey/base/sha1.h>

/* ── the key ── */

/* Writes `len` bytes in base64, and a NUL, into storage of exactly that size. */
static void write_base64(char *to, size_t size, const uint8_t *bytes, size_t len)
{
    struct mk_buf b;
    mk_buf_init_fixed(&b, to, size);
    mk_base64_encode(&b, bytes, len, MK_BASE64);
    mk_buf_addc(&b, '\0');
    assert(!b.err && b.len == size);
}

void mk_ws_key_make(char to[MK_WS_KEY_BYTES + 1], const uint8_t nonce[MK_WS_NONCE_BYTES])
{
    write_base64(to, MK_WS_KEY_BYTES + 1, nonce, MK_WS_NONCE_BYTES);
}

static bool is_base64_digit(char c)
{
    return mk_is_name_byte(c, "+/");
}

/* Stricter decoders than the RFC asks for would reject bits of the last digit that nothing uses. */
bool mk__ws_key_is_valid(struct mk_str key)
{
    enum { DIGITS = MK_WS_KEY_BYTES - 2 };
    if (key.len != MK_WS_KEY_BYTES || key.p[DIGITS] != '=' || key.p[DIGITS + 1] != '=')
        return false;
    for (size_t i = 0; i < DIGITS; i++)
        if (!is_base64_digit(key.p[i]))
            return false;
    return true;
}

void mk_ws_accept_key(char to[MK_WS_ACCEPT_BYTES + 1], struct mk_str key)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 section 1.3 */
    char text[MK_WS_KEY_BYTES + sizeof(guid) - 1];
    uint8_t digest[MK_SHA1_BYTES];
    assert(key.len == MK_WS_KEY_BYTES);
    memcpy(text, key.p, MK_WS_KEY_BYTES);
    memcpy(text + MK_WS_KEY_BYTES, guid, sizeof(guid) - 1);
    mk_sha1(digest, text, sizeof(text));
    write_base64(to, MK_WS_ACCEPT_BYTES + 1, digest, sizeof(digest));
}

bool mk__ws_version_is_valid(struct mk_str version)
{
    return mk_str_eq(version, MK_STR("13"));
}

/* ── the subprotocol ── */

struct mk_str mk__ws_find_protocol(struct mk_str list, struct mk_str name)
{
    struct mk_str element;
    while (mk_str_next(&list, &element))
        if (mk_str_eq(element, name))
            return element;
    return MK_STR_NONE;
}

struct mk_str mk__ws_choose_protocol(struct mk_str offered, struct mk_str supported)
{
    struct mk_str name;
    while (mk_str_next(&offered, &name))
        if (mk__ws_find_protocol(supported, name).p)
            return name;
    return MK_STR_NONE;
}

/* ── the origin (RFC 6454) ── */

struct origin {
    struct mk_str scheme, host;
    uint16_t port; /* 0: none, and the scheme has no default */
};

static uint16_t find_default_port(struct mk_str scheme)
{
    return mk_str_ieq(scheme, MK_STR("http")) ? 80 : mk_str_ieq(scheme, MK_STR("https")) ? 443 : 0;
}

/* Returns the length of the host at the beginning of an authority: a name, an IPv4 address, or [an IPv6 address]. */
static size_t measure_host(struct mk_str authority)
{
    const char *end = authority.len && authority.p[0] == '[' ? memchr(authority.p, ']', authority.len) : NULL;
    if (!end)
        return mk_str_visible_len(authority, "/\\?#@,:[]\"<>");
    struct mk_str address = mk_str(authority.p + 1, (size_t)(end - authority.p) - 1);
    return address.len && mk_str_is_visible(address, "/\\?#@,[]\"<>") ? address.len + 2 : 0;
}

/* Splits "host" or "host:port"; an empty port is the default. Returns false if it is neither. */
static bool parse_authority(struct mk_str authority, struct origin *o)
{
    size_t n = measure_host(authority);
    uint64_t port = 0;
    if (!n)
        return false;
    struct mk_str rest = mk_str_after(authority, n);
    o->host = mk_str(authority.p, n);
    o->port = find_default_port(o->scheme);
    if (rest.len < 2)
        return !rest.len || *rest.p == ':';
    if (*rest.p != ':' || !mk_str_u64(mk_str_after(rest, 1), UINT16_MAX, &port))
        return false;
    o->port = (uint16_t)port;
    return true;
}

static bool parse_origin(struct mk_str text, struct origin *o)
{
    const char *colon = text.len ? memchr(text.p, ':', text.len) : NULL;
    if (!colon || colon == text.p)
        return false;
    o->scheme = mk_str(text.p, (size_t)(colon - text.p));
    struct mk_str rest = mk_str(colon, text.len - o->scheme.len);
    return mk_str_starts(rest, MK_STR("://")) && parse_authority(mk_str_after(rest, 3), o);
}

static bool is_same_origin(const struct origin *a, const struct origin *b)
{
    return a->port == b->port && mk_str_ieq(a->host, b->host) && mk_str_ieq(a->scheme, b->scheme);
}

/* Returns true if an element of the list is this origin; `o` is NULL if the text could not be parsed. */
static bool is_in_origins(struct mk_str list, struct mk_str text, const struct origin *o)
{
    struct mk_str element;
    while (mk_str_next(&list, &element)) {
        struct origin other;
        if (mk_str_eq(element, MK_STR("*")) || (mk_str_eq(element, text) && mk_str_eq(text, MK_STR("null"))))
            return true;
        if (o && parse_origin(element, &other) && is_same_origin(o, &other))
            return true;
    }
    return false;
}

bool mk__ws_origin_allowed(struct mk_str origin, struct mk_str authority, bool tls, struct mk_str allowed)
{
    struct origin theirs, ours = {.scheme = tls ? MK_STR("https") : MK_STR("http")};
    if (!origin.len)
        return true;
    bool parsed = parse_origin(origin, &theirs);
    if (parsed && parse_authority(authority, &ours) && is_same_origin(&theirs, &ours))
        return true;
    return is_in_origins(allowed, origin, parsed ? &theirs : NULL);
}
