// SPDX-License-Identifier: Apache-2.0
/*
 * The table of host names (server/generation/vhost.h): normalizing, syntax, hashing. generation.c reports errors, and
 * chooses the default host.
 */
#include "server/generation/vhost.h"

#include <monkey/base/random.h>

#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>

enum { TEXT_BYTES = MK__VHOST_NAME_MAX + 3, SLOTS_MIN = 4 };

/* ── names ── */

static size_t normalize_v6(struct mk_str s, char *out)
{
    struct in6_addr address;
    char text[INET6_ADDRSTRLEN];
    if (s.len < 4 || s.len - 2 >= sizeof(text) || s.p[s.len - 1] != ']')
        return 0;
    *(char *)mempcpy(text, s.p + 1, s.len - 2) = '\0';
    if (strlen(text) != s.len - 2 || inet_pton(AF_INET6, text, &address) != 1)
        return 0;
    out[0] = '[';
    inet_ntop(AF_INET6, &address, out + 1, INET6_ADDRSTRLEN);
    size_t len = strlen(out);
    out[len] = ']';
    return len + 1;
}

/* Writes the normalized name, up to TEXT_BYTES without a NUL. Returns its length; 0: it is not a name. */
static size_t normalize_name(struct mk_str s, char *out)
{
    if (s.len && s.p[0] == '[')
        return normalize_v6(s, out);
    if (s.len && s.p[s.len - 1] == '.')
        s.len--;
    if (s.len > MK__VHOST_NAME_MAX || !s.len || s.p[0] == '.')
        return 0;
    for (size_t i = 0; i < s.len; i++)
        out[i] = mk_lower(s.p[i]);
    return s.len;
}

static const char *explain_byte(char c)
{
    switch (c) {
    case '.':
        return "there is nothing between two dots";
    case ':':
        return "a name has no port, and an IPv6 address is written in brackets";
    case '/':
        return "a name has no slash: write it as in example.org";
    case ',':
        return "a blank separates names, not a comma";
    case '*':
        return "a * can only be the whole first label, as in *.example.org";
    default:
        return c & 0x80 ? "a name outside of ASCII is written in its xn-- form" : "names have no such character";
    }
}

/* Checks a normalized name without its wildcard. Returns NULL, or what is wrong. */
static const char *check_labels(struct mk_str s)
{
    char before = '.';
    for (size_t i = 0; i < s.len; i++) {
        if (!mk_is_name_byte(s.p[i], "-_") && (s.p[i] != '.' || before == '.'))
            return explain_byte(s.p[i]);
        before = s.p[i];
    }
    return before == '.' ? explain_byte('.') : NULL;
}

/* Checks a name as it was configured, and normalized. Returns NULL, or what is wrong. */
static MK_COLD const char *check_name(struct mk_str name, struct mk_str normal)
{
    bool address = name.len && name.p[0] == '[';
    size_t cut = mk_str_starts(normal, MK_STR("*.")) ? 2 : 0;
    if (name.len && memmem(name.p, name.len, "://", 3))
        return "a name is not a URL: write it as in example.org";
    if (mk_str_starts(name, MK_STR("~")))
        return "a name is no expression: write each name, or *.example.org for all below a domain";
    if (name.len > 1 && name.p[0] == '.')
        return "all names below a domain are *.example.org, and the domain is a name, too: example.org *.example.org";
    if (!normal.len && address)
        return "an IPv6 address is written as [2001:db8::1], without a port";
    if (!normal.len)
        return name.len > MK__VHOST_NAME_MAX ? "names have at most 253 bytes"
                                             : "a name starts with a letter or a digit";
    return address ? NULL : check_labels(mk_str_after(normal, cut));
}

/* ── hashing ── */

/*
 * A polynomial in a secret point, modulo 2^31 - 1: two names of n bytes have the same value at no more than n of 2^30
 * points, so that a client that does not know the point cannot choose names that collide. Evaluated from the last byte
 * to the first, one pass gives the values of all suffixes. The point is below 2^30, so that one fold for each byte is
 * enough. Values are not fully reduced, which makes no difference: equal names have equal values.
 */
static uint64_t hash_byte(const struct mk__vhosts *t, uint64_t h, char c)
{
    h = h * t->point + (unsigned char)c;
    return (h & 0x7fffffff) + (h >> 31);
}

/* Similar names have neighbouring values; mixing spreads them over the table. */
static uint32_t mix_hash(const struct mk__vhosts *t, uint64_t h)
{
    h = (h ^ t->seed) * 0x9e3779b97f4a7c15;
    h = (h ^ h >> 32) * (t->seed | 1);
    return (uint32_t)(h >> 32);
}

static uint32_t hash_name(const struct mk__vhosts *t, struct mk_str s)
{
    uint64_t h = 1;
    while (s.len)
        h = hash_byte(t, h, s.p[--s.len]);
    return mix_hash(t, h);
}

/* ── the table ── */

/* Returns the slot of the key, or the free slot for it. At least half of all slots are free. */
static struct mk__vhost *find_slot(const struct mk__vhosts *t, uint32_t hash, struct mk_str key)
{
    assert(t->slots && (t->mask & (t->mask + 1)) == 0);
    for (uint32_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        struct mk__vhost *slot = &t->slots[i];
        if (!slot->host || (slot->hash == hash && mk_str_eq(slot->name, key)))
            return slot;
    }
}

MK_COLD int mk__vhost_init(struct mk__vhosts *t, struct mk_arena *arena, size_t names)
{
    size_t n = SLOTS_MIN;
    *t = (struct mk__vhosts){.arena = arena};
    if (names > UINT32_MAX / 4)
        return -ENOMEM;
    while (n < names * 2)
        n *= 2;
    int err = mk_random(&t->point, sizeof(t->point));
    err = err == 0 ? mk_random(&t->seed, sizeof(t->seed)) : err;
    if (err < 0)
        return err;
    t->point &= (1 << 30) - 1;
    t->mask = (uint32_t)n - 1;
    t->slots = mk_arena_zalloc(arena, n * sizeof(*t->slots));
    return t->slots ? 0 : -ENOMEM;
}

static uint32_t count_dots(struct mk_str s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.p[i] == '.';
    return n;
}

MK_COLD int mk__vhost_add(struct mk__vhosts *t, struct mk_str name, struct mk_host *host, uint32_t nth,
                          const char **ret_reason, const struct mk__vhost **ret_first)
{
    assert(host);
    char text[TEXT_BYTES];
    struct mk_str key = mk_str(text, normalize_name(name, text));
    bool wild = mk_str_starts(key, MK_STR("*."));
    *ret_reason = check_name(name, key);
    if (*ret_reason)
        return -EINVAL;
    key = mk_str(text + wild, key.len - wild);
    uint32_t hash = hash_name(t, key);
    struct mk__vhost *slot = find_slot(t, hash, key);
    *ret_first = slot;
    if (slot->host)
        return -EEXIST;
    struct mk_str copy = mk_arena_dup(t->arena, key);
    if (!copy.p)
        return -ENOMEM;
    *slot = (struct mk__vhost){.name = copy, .host = host, .nth = nth, .hash = hash};
    if (wild && count_dots(key) > t->dots_max)
        t->dots_max = count_dots(key);
    return 0;
}

struct mk_host *mk__vhost_find(const struct mk__vhosts *t, struct mk_str name)
{
    char text[TEXT_BYTES];
    size_t len = normalize_name(name, text);
    uint64_t h = 1;
    uint32_t dots = 0;
    struct mk_host *wild = NULL, *exact;

    if (!len)
        return NULL;
    for (size_t i = len; i-- > 0;) {
        h = hash_byte(t, h, text[i]);
        if (text[i] != '.' || ++dots > t->dots_max)
            continue;
        struct mk_host *host = find_slot(t, mix_hash(t, h), mk_str(text + i, len - i))->host;
        wild = host ? host : wild; /* each suffix is longer than the one before */
    }
    exact = find_slot(t, mix_hash(t, h), mk_str(text, len))->host;
    return exact ? exact : wild;
}
