// SPDX-License-Identifier: Apache-2.0
/*
 * Parses the PROXY protocol header (http/message/proxy_protocol.h): sections 2.1 and 2.2 of "The PROXY protocol,
 * Versions 1 & 2". The TLVs after the addresses of version 2 are skipped.
 */
#include "http/message/proxy_protocol.h"

#include <assert.h>
#include <errno.h>

enum { SIGNATURE_BYTES = 12, FIXED_BYTES = 16, UNIX_PATH_BYTES = 108 };

/* Tells whether `in` is a prefix of `mark`, or begins with it. */
static bool matches_prefix(struct mk_str in, struct mk_str mark)
{
    size_t n = in.len < mark.len ? in.len : mark.len;
    return memcmp(in.p, mark.p, n) == 0;
}

/* ── version 1: words, separated by one space ── */

static bool read_v1_address(struct mk_str *rest, int family, struct mk_address *ret)
{
    struct mk_str word = mk_str_split(rest, ' ');
    const char *colon = word.len ? memchr(word.p, ':', word.len) : NULL;
    bool v6 = colon && *word.p != '[' && memrchr(word.p, ':', word.len) != colon;
    return (family == AF_INET6 ? v6 : !colon) && mk_address_parse(word, ret) == 0;
}

static bool read_v1_port(struct mk_str *rest, uint16_t *ret)
{
    struct mk_str word = mk_str_split(rest, ' ');
    uint64_t port;
    if (!mk_str_u64(word, UINT16_MAX, &port) || (*word.p == '0' && word.len > 1))
        return false;
    *ret = (uint16_t)port;
    return true;
}

static int read_v1_line(struct mk_str line, struct mk_address *ret)
{
    struct mk_address destination;
    uint16_t port;
    mk_str_split(&line, ' ');
    struct mk_str protocol = mk_str_split(&line, ' ');
    int family = mk_str_eq(protocol, MK_STR("TCP6")) ? AF_INET6 : AF_INET;
    if (mk_str_eq(protocol, MK_STR("UNKNOWN")))
        return 0; /* the rest of the line must be ignored */
    if (family == AF_INET && !mk_str_eq(protocol, MK_STR("TCP4")))
        return -EPROTO;
    if (!read_v1_address(&line, family, ret) || !read_v1_address(&line, family, &destination) ||
        !read_v1_port(&line, &ret->port) || !read_v1_port(&line, &port))
        return -EPROTO;
    return line.len || line.p[-1] == ' ' ? -EPROTO : 0;
}

static int read_v1(struct mk_str in, struct mk__proxy_protocol *ret)
{
    struct mk_str part = mk_str(in.p, in.len < MK__PROXY_PROTOCOL_V1_MAX ? in.len : MK__PROXY_PROTOCOL_V1_MAX);
    const char *lf = memchr(part.p, '\n', part.len);
    if (!lf)
        return part.len < MK__PROXY_PROTOCOL_V1_MAX ? MK_AGAIN : -EPROTO;
    size_t len = (size_t)(lf - part.p);
    assert(len > 0); /* at least the signature */
    if (part.p[len - 1] != '\r')
        return -EPROTO;
    ret->bytes = (uint16_t)(len + 1);
    return read_v1_line(mk_str(part.p, len - 1), &ret->source);
}

/* ── version 2: binary ── */

static uint16_t read_u16(const char *p)
{
    return (uint16_t)((unsigned char)p[0] << 8 | (unsigned char)p[1]);
}

/* The high half of `kind` is the address family, the low half the transport: 1 stream, 2 datagram. */
static int read_v2_addresses(uint8_t kind, struct mk_str block, struct mk_address *ret)
{
    static const struct {
        uint8_t family, address_bytes, ports_bytes;
    } kinds[] = {{AF_UNSPEC, 0, 0}, {AF_INET, 4, 4}, {AF_INET6, 16, 4}, {AF_UNIX, UNIX_PATH_BYTES, 0}};
    unsigned family = kind >> 4;
    if (family >= MK_COUNT_OF(kinds) || (kind & 15) > 2)
        return -EPROTO;
    if (block.len < 2u * kinds[family].address_bytes + kinds[family].ports_bytes)
        return -EPROTO;
    if (family && kind & 15)
        mk_address_set(ret, kinds[family].family, block.p,
                       kinds[family].ports_bytes ? read_u16(block.p + 2 * kinds[family].address_bytes) : 0);
    return 0;
}

static int read_v2(struct mk_str in, struct mk__proxy_protocol *ret)
{
    if (in.len > SIGNATURE_BYTES && (uint8_t)in.p[SIGNATURE_BYTES] != 0x20 && in.p[SIGNATURE_BYTES] != 0x21)
        return -EPROTO; /* another version, or neither LOCAL nor PROXY */
    if (in.len < FIXED_BYTES)
        return MK_AGAIN;
    size_t len = read_u16(in.p + FIXED_BYTES - 2);
    if (len > MK__PROXY_PROTOCOL_MAX - FIXED_BYTES)
        return -EPROTO;
    if (in.len < FIXED_BYTES + len)
        return MK_AGAIN;
    ret->bytes = (uint16_t)(FIXED_BYTES + len);
    assert(ret->bytes <= in.len);
    bool is_local = in.p[SIGNATURE_BYTES] == 0x20;
    return is_local
               ? 0
               : read_v2_addresses((uint8_t)in.p[SIGNATURE_BYTES + 1], mk_str(in.p + FIXED_BYTES, len), &ret->source);
}

int mk__proxy_protocol_read(struct mk_str in, struct mk__proxy_protocol *ret)
{
    *ret = (struct mk__proxy_protocol){0};
    if (!in.len)
        return MK_AGAIN;
    if (matches_prefix(in, MK_STR("\r\n\r\n\0\r\nQUIT\n")))
        return read_v2(in, ret);
    return matches_prefix(in, MK_STR("PROXY ")) ? read_v1(in, ret) : -EPROTO;
}
