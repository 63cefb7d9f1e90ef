// SPDX-License-Identifier: Apache-2.0
/*
 * Reads, writes and compares the addresses and networks of <monkey/base/address.h>.
 */
#include <monkey/base/address.h>

#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>

enum { V4_BITS = 32, V6_BITS = 128, MAPPED_BITS = 96, TEXT_BYTES = INET6_ADDRSTRLEN, SHOWN_BYTES = 80 };

static const uint8_t mapped[MAPPED_BITS / 8] = {[10] = 0xff, [11] = 0xff};

void mk_address_set(struct mk_address *address, int family, const void *bytes, uint16_t port)
{
    assert(bytes || (family != AF_INET && family != AF_INET6));
    *address = (struct mk_address){.family = (uint16_t)family, .port = port};
    if (family == AF_INET6 && memcmp(bytes, mapped, sizeof(mapped)) == 0) {
        address->family = AF_INET;
        memcpy(address->bytes, (const uint8_t *)bytes + sizeof(mapped), V4_BITS / 8);
    } else if (family == AF_INET || family == AF_INET6) {
        memcpy(address->bytes, bytes, family == AF_INET ? V4_BITS / 8 : V6_BITS / 8);
    }
}

/* ── reading ── */

static int parse_host(struct mk_str text, int family, uint16_t port, struct mk_address *ret)
{
    char copy[TEXT_BYTES];
    uint8_t bytes[V6_BITS / 8];
    if (text.len >= sizeof(copy) || memchr(text.p, '\0', text.len))
        return -EINVAL;
    memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    if (inet_pton(family, copy, bytes) != 1)
        return -EINVAL;
    mk_address_set(ret, family, bytes, port);
    return 0;
}

static int parse_bare(struct mk_str text, struct mk_address *ret)
{
    if (!text.len)
        return -EINVAL;
    return parse_host(text, memchr(text.p, ':', text.len) ? AF_INET6 : AF_INET, 0, ret);
}

int mk_address_parse(struct mk_str text, struct mk_address *ret)
{
    bool bracketed = text.len && *text.p == '[';
    const char *end = text.len ? memchr(text.p, bracketed ? ']' : ':', text.len) : NULL;
    if (!end || (!bracketed && memchr(end + 1, ':', (size_t)(text.p + text.len - end - 1))))
        return bracketed ? -EINVAL : parse_bare(text, ret);
    struct mk_str host = mk_str(text.p + bracketed, (size_t)(end - text.p) - bracketed);
    struct mk_str rest = mk_str(end + bracketed, text.len - (size_t)(end - text.p) - bracketed);
    uint64_t port = 0;
    if (rest.len && (*rest.p != ':' || !mk_str_u64(mk_str_after(rest, 1), UINT16_MAX, &port)))
        return -EINVAL;
    return parse_host(host, bracketed ? AF_INET6 : AF_INET, (uint16_t)port, ret);
}

/* ── writing: without printf, because every request may need it ── */

static char *put_number(char *to, unsigned n, unsigned base)
{
    assert(n <= UINT16_MAX && (base == 10 || base == 16));
    char digits[4];
    unsigned len = 0;
    do
        digits[len++] = "0123456789abcdef"[n % base];
    while (n /= base);
    while (len)
        *to++ = digits[--len];
    return to;
}

static char *put_v4(char *to, const uint8_t *bytes)
{
    for (unsigned i = 0; i < V4_BITS / 8; i++) {
        if (i)
            *to++ = '.';
        to = put_number(to, bytes[i], 10);
    }
    return to;
}

static unsigned get_v6_group(const uint8_t *bytes, unsigned i)
{
    return (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];
}

/*
 * Writes as RFC 5952 section 4 wants it: `::` replaces the longest run of zero groups, the first one of equal length,
 * and never a single group.
 */
static char *put_v6(char *to, const uint8_t *bytes)
{
    unsigned gap = 8, gap_len = 1;
    for (unsigned i = 0, n; i < 8; i += n + 1) {
        for (n = 0; i + n < 8 && !get_v6_group(bytes, i + n); n++)
            ;
        if (n > gap_len) {
            gap = i;
            gap_len = n;
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        if (i == gap) {
            *to++ = ':';
            *to++ = ':';
            i += gap_len - 1;
            continue;
        }
        if (i && i != gap + gap_len)
            *to++ = ':';
        to = put_number(to, get_v6_group(bytes, i), 16);
    }
    return to;
}

void mk_address_print(const struct mk_address *address, struct mk_buf *out)
{
    char text[TEXT_BYTES], *end = text;
    switch (address->family) {
    case AF_INET:
        end = put_v4(text, address->bytes);
        break;
    case AF_INET6:
        end = put_v6(text, address->bytes);
        break;
    default:
        mk_buf_adds(out, address->family == AF_UNIX ? MK_STR("unix") : MK_STR("unknown"));
        return;
    }
    mk_buf_add(out, text, (size_t)(end - text));
}

/* ── comparing ── */

bool mk_address_equal(const struct mk_address *a, const struct mk_address *b)
{
    return a->family && a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool mk_network_contains(const struct mk_network *network, const struct mk_address *address)
{
    assert(network->bits <= (network->address.family == AF_INET ? V4_BITS : V6_BITS));
    const uint8_t *own = network->address.bytes, *theirs = address->bytes;
    unsigned whole = network->bits / 8, part = network->bits % 8;
    if (!address->family || address->family != network->address.family || memcmp(own, theirs, whole) != 0)
        return false;
    return !part || (own[whole] ^ theirs[whole]) >> (8 - part) == 0;
}

bool mk_networks_contain(const struct mk_networks *networks, const struct mk_address *address)
{
    for (uint32_t i = 0; i < networks->n; i++)
        if (mk_network_contains(&networks->items[i], address))
            return true;
    return false;
}

/* ── networks ── */

/* Clears all but the first `bits`. Returns whether any of them was set. */
static bool clear_host_bits(struct mk_address *address, unsigned bits)
{
    assert(bits <= V6_BITS);
    bool found = false;
    for (unsigned i = bits / 8; i < sizeof(address->bytes); i++) {
        uint8_t mask = (uint8_t)(i == bits / 8 ? 0xff >> bits % 8 : 0xff);
        found |= address->bytes[i] & mask;
        address->bytes[i] &= (uint8_t)~mask;
    }
    return found;
}

static int parse_bits(struct mk_str text, struct mk_str bits, bool was_v6, struct mk_network *ret, struct mk_buf *error)
{
    uint64_t n, most = was_v6 ? V6_BITS : V4_BITS;
    unsigned hidden = was_v6 && ret->address.family == AF_INET ? MAPPED_BITS : 0;
    if (!mk_str_u64(bits, most, &n) || n < hidden) {
        mk_buf_addf(error, "\"%.*s\": the number of bits is from %u to %u", MK_STR_ARG(text), hidden, (unsigned)most);
        return -EINVAL;
    }
    ret->bits = (uint8_t)(n - hidden);
    if (!clear_host_bits(&ret->address, ret->bits))
        return 0;
    mk_buf_addf(error, "\"%.*s\" names more than %u bits; did you mean \"", MK_STR_ARG(text), ret->bits);
    mk_address_print(&ret->address, error);
    mk_buf_addf(error, "/%u\"?", ret->bits);
    return -EINVAL;
}

int mk_network_parse(struct mk_str text, struct mk_network *ret, struct mk_buf *error)
{
    struct mk_str shown = mk_str(text.p, text.len < SHOWN_BYTES ? text.len : SHOWN_BYTES);
    const char *slash = text.len ? memchr(text.p, '/', text.len) : NULL;
    struct mk_str host = mk_str(text.p, slash ? (size_t)(slash - text.p) : text.len);
    *ret = (struct mk_network){.address.family = AF_UNIX};
    if (mk_str_ieq(text, MK_STR("unix")))
        return 0;
    if (parse_bare(host, &ret->address) < 0) {
        mk_buf_addf(error, "\"%.*s\" is not a network, such as 192.0.2.1, 10.0.0.0/8, 2001:db8::/32 or unix",
                    MK_STR_ARG(shown));
        return -EINVAL;
    }
    ret->bits = ret->address.family == AF_INET ? V4_BITS : V6_BITS;
    if (!slash)
        return 0;
    return parse_bits(shown, mk_str(slash + 1, text.len - host.len - 1), memchr(host.p, ':', host.len), ret, error);
}
