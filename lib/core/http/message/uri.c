// SPDX-License-Identifier: Apache-2.0
/*
 * Request targets, authorities and paths: their syntax, and the normal form of a path. Does not look up hosts or files.
 */
#include "http/message/uri.h"

#include "base/word.h"

#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>

#include <monkey/base/escape.h>

/* Where a byte is allowed. */
enum {
    TARGET = 1,  /* part of a request target */
    SEGMENT = 2, /* copied as it is into a path segment: neither '/' nor '%' nor NUL */
    NAME = 4,    /* part of a registered name without an escape: unreserved or sub-delim (RFC 3986 section 3.2.2) */
    PATH = TARGET | SEGMENT,
    ALL = TARGET | SEGMENT | NAME,
};

static const uint8_t byte_kinds[256] = {
    [0x01 ... ' '] = SEGMENT,
    ['!'] = ALL,
    ['"'] = PATH,
    ['#'] = SEGMENT,
    ['$'] = ALL,
    ['%'] = TARGET,
    ['&' ... '.'] = ALL,
    ['/'] = TARGET,
    ['0' ... '9'] = ALL,
    [':'] = PATH,
    [';'] = ALL,
    ['<'] = PATH,
    ['='] = ALL,
    ['>' ... '@'] = PATH,
    ['A' ... 'Z'] = ALL,
    ['['] = PATH,
    ['\\'] = SEGMENT,
    [']' ... '^'] = PATH,
    ['_'] = ALL,
    ['`'] = PATH,
    ['a' ... 'z'] = ALL,
    ['{' ... '}'] = PATH,
    ['~'] = ALL,
    [0x7f ... 0xff] = SEGMENT,
};

static bool is_kind(char c, uint8_t kind)
{
    return byte_kinds[(unsigned char)c] & kind;
}

/* Marks bytes that are not part of a request target: control bytes, spaces, '#', the backslash, and what is not ASCII.
 */
static uint64_t mark_not_target(uint64_t word)
{
    uint64_t above = word | (word + MK__WORD_OF(1));
    return mk__word_mark_below(word, '!') | mk__word_mark(word, '#') | mk__word_mark(word, '\\') |
           (above & MK__WORD_OF(0x80));
}

static bool is_target(struct mk_str s)
{
    if (s.len >= MK__WORD_BYTES / 2)
        return !mk__word_has_marks(s.p, s.len, mark_not_target);
    for (size_t i = 0; i < s.len; i++)
        if (!is_kind(s.p[i], TARGET))
            return false;
    return true;
}

/* Splits `s` before the first `a` or `b`. Returns the first part; `*ret_rest` is the rest, which may be empty. */
static struct mk_str split_at(struct mk_str s, char a, char b, struct mk_str *ret_rest)
{
    size_t i = 0;
    while (i < s.len && s.p[i] != a && s.p[i] != b)
        i++;
    *ret_rest = mk_str_after(s, i);
    return mk_str(s.p, i);
}

static MK_HOT void split_query(struct mk_str s, struct mk__uri_parts *t)
{
    const char *end = s.len ? memchr(s.p, '?', s.len) : NULL;
    t->has_query = end != NULL;
    t->path = mk_str(s.p, end ? (size_t)(end - s.p) : s.len);
    if (end)
        t->query = mk_str(end + 1, s.len - t->path.len - 1);
}

static int check_authority(struct mk_str authority, bool port_wanted)
{
    struct mk__uri_host_port parts;
    if (mk__uri_split_authority(authority, &parts) < 0 || parts.kind == MK__HOST_EMPTY)
        return -EINVAL;
    return port_wanted && !parts.has_port ? -EINVAL : 0;
}

static bool split_scheme(struct mk_str *s, struct mk_str *ret_scheme)
{
    static const char schemes[][9] = {"http://", "https://"};
    for (size_t i = 0; i < MK_COUNT_OF(schemes); i++) {
        struct mk_str prefix = mk_str_c(schemes[i]);
        if (s->len < prefix.len || !mk_str_ieq(mk_str(s->p, prefix.len), prefix))
            continue;
        *ret_scheme = mk_str(s->p, prefix.len - 3);
        *s = mk_str(s->p + prefix.len, s->len - prefix.len);
        return true;
    }
    return false;
}

static int split_absolute_form(bool options, struct mk_str s, struct mk__uri_parts *t)
{
    struct mk_str rest;
    if (!split_scheme(&s, &t->scheme))
        return -EINVAL;
    t->authority = split_at(s, '/', '?', &rest);
    split_query(rest, t);
    if (!t->path.len) {
        if (options && !t->has_query)
            t->form = MK__URI_ASTERISK;
        else
            t->path = MK_STR("/");
    }
    return check_authority(t->authority, false);
}

int mk__uri_split_target(struct mk_str method, struct mk_str target, struct mk__uri_parts *ret)
{
    bool options = mk_str_eq(method, MK_STR("OPTIONS"));

    *ret = (struct mk__uri_parts){.form = MK__URI_ORIGIN};
    if (!is_target(target))
        return -EINVAL;
    if (mk_str_eq(method, MK_STR("CONNECT"))) {
        ret->form = MK__URI_AUTHORITY;
        ret->authority = target;
        return check_authority(target, true);
    }
    if (target.len && target.p[0] == '/') {
        split_query(target, ret);
        return 0;
    }
    if (mk_str_eq(target, MK_STR("*"))) {
        ret->form = MK__URI_ASTERISK;
        return options ? 0 : -EINVAL;
    }
    ret->form = MK__URI_ABSOLUTE;
    return split_absolute_form(options, target, ret);
}

/* inet_pton() needs a C string, so `s` is copied; a NUL in `s` must not shorten the copy. */
static bool is_address(int family, struct mk_str s)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    if (s.len >= sizeof(text) || memchr(s.p, '\0', s.len))
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    return inet_pton(family, text, address) == 1;
}

/* Returns the end of the registered name that `s` begins with: the first byte that cannot be part of it. */
static const char *skip_name(struct mk_str s)
{
    const char *p = s.p, *end = s.p + s.len;
    for (;; p += 3) {
        while (p < end && is_kind(*p, NAME))
            p++;
        if (mk_percent_value(p, (size_t)(end - p)) < 0)
            return p;
    }
}

static int split_name(struct mk_str host, struct mk__uri_host_port *a, struct mk_str *ret_rest)
{
    if (host.p[0] == '[') {
        a->kind = MK__HOST_V6;
        a->name = split_at(host, ']', ']', ret_rest);
        if (!ret_rest->len || !is_address(AF_INET6, mk_str(host.p + 1, a->name.len - 1)))
            return -EINVAL;
        a->name.len++;
        *ret_rest = mk_str_after(*ret_rest, 1);
        return 0;
    }
    a->name = mk_str(host.p, (size_t)(skip_name(host) - host.p));
    *ret_rest = mk_str(host.p + a->name.len, host.len - a->name.len); /* begins with ':', or the caller rejects it */
    if (!a->name.len)
        return -EINVAL;
    bool digit = a->name.p[0] >= '0' && a->name.p[0] <= '9';
    a->kind = digit && is_address(AF_INET, a->name) ? MK__HOST_V4 : MK__HOST_NAME;
    return 0;
}

int mk__uri_split_authority(struct mk_str host, struct mk__uri_host_port *ret)
{
    struct mk_str rest;
    uint64_t port = 0;

    *ret = (struct mk__uri_host_port){.kind = MK__HOST_EMPTY};
    if (!host.len)
        return 0;
    if (split_name(host, ret, &rest) < 0)
        return -EINVAL;
    if (!rest.len)
        return 0;
    if (rest.p[0] != ':')
        return -EINVAL;
    ret->has_port = rest.len > 1;
    if (ret->has_port && !mk_str_u64(mk_str_after(rest, 1), UINT16_MAX, &port))
        return -EINVAL;
    ret->port = (uint16_t)port;
    return 0;
}

/*
 * Ends the segment out[start..end). Removes "." and "..", the latter with the segment before it. Returns where the next
 * byte goes; `*ret_named` tells whether a name was kept.
 */
static size_t end_segment(const char *out, size_t start, size_t end, bool *ret_named)
{
    assert(start > 0 && start <= end);
    size_t len = end - start;
    bool dots = (len == 1 || len == 2) && out[start] == '.' && out[end - 1] == '.';
    *ret_named = len && !dots;
    if (!dots)
        return end;
    if (len == 2 && start > 1)
        while (out[--start - 1] != '/')
            ;
    return start;
}

/* Decodes the escape at `p` (of `len` bytes). Returns the byte, -EINVAL (none, or a NUL) or -ENOENT (a slash). */
static int decode_escape(const char *p, size_t len)
{
    int c = mk_percent_value(p, len);
    return c <= 0 ? -EINVAL : c == '/' ? -ENOENT : c;
}

/*
 * Marks escapes, NUL, and a slash before '/' or '.', which differ in one bit. `next` has the bytes after those of
 * `word`. Some other bytes may be marked.
 */
static MK_HOT uint64_t mark_not_normal(uint64_t word, uint64_t next)
{
    uint64_t removable = mk__word_mark(word, '/') & mk__word_mark(next | MK__WORD_OF(1), '/');
    return removable | mk__word_mark(next, '%') | mk__word_mark(next, 0);
}

/* Tells whether decoding would leave a path, which begins with a slash, as it is. False for some of those, too. */
static bool is_normal(struct mk_str path)
{
    size_t pairs = path.len - 1, at = 0;
    uint64_t marks = 0;
    if (pairs < MK__WORD_BYTES / 2)
        return false;
    if (pairs < MK__WORD_BYTES)
        return !mark_not_normal(mk__word_load_short(path.p, pairs), mk__word_load_short(path.p + 1, pairs));
    for (; at < pairs - MK__WORD_BYTES; at += MK__WORD_BYTES)
        marks |= mark_not_normal(mk__word_load(path.p + at), mk__word_load(path.p + at + 1));
    at = pairs - MK__WORD_BYTES;
    return !(marks | mark_not_normal(mk__word_load(path.p + at), mk__word_load(path.p + at + 1)));
}

MK_HOT ssize_t mk__uri_decode_path(struct mk_str raw, char *out, size_t size)
{
    size_t at = 1, segment = 1;
    bool has_name;

    if (!raw.len || raw.p[0] != '/')
        return -EINVAL;
    if (size < 2)
        return -ENAMETOOLONG;
    if (raw.len < size && is_normal(raw)) {
        *(char *)mempcpy(out, raw.p, raw.len) = '\0';
        return (ssize_t)raw.len;
    }
    out[0] = '/';
    for (size_t i = 1; i < raw.len; i++) {
        int c = (unsigned char)raw.p[i];
        if (c == '/') {
            at = segment = end_segment(out, segment, at, &has_name);
            if (!has_name)
                continue;
        } else if (!(byte_kinds[c] & SEGMENT)) {
            c = decode_escape(raw.p + i, raw.len - i);
            if (c < 0)
                return c;
            i += 2;
        }
        if (at == size - 1)
            return -ENAMETOOLONG;
        out[at++] = (char)c;
        if (c == '/')
            segment = at;
    }
    at = end_segment(out, segment, at, &has_name);
    assert(at > 0 && at < size);
    out[at] = '\0';
    return (ssize_t)at;
}
