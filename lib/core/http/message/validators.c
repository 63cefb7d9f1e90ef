// SPDX-License-Identifier: Apache-2.0
/*
 * Entity tags and the evaluation of preconditions: the comparisons and their order. The caller selects the file and
 * sends the response.
 */
#include "http/message/validators.h"

#include "http/message/date.h"

static char *put_hex(char *out, uint64_t value)
{
    int digits = value ? (67 - __builtin_clzll(value)) / 4 : 1;
    for (int i = digits; i--; value >>= 4)
        out[i] = "0123456789abcdef"[value & 15];
    return out + digits;
}

size_t mk__validators_format_etag(uint64_t size, int64_t mtime_s, uint32_t mtime_ns, uint64_t version, bool weak,
                                  char out[MK__ETAG_BYTES])
{
    uint64_t time = (uint64_t)mtime_s * 1000000000 + mtime_ns;
    char *p = out;
    if (weak || !version) {
        *p++ = 'W';
        *p++ = '/';
    }
    *p++ = '"';
    p = put_hex(p, size);
    *p++ = '-';
    p = put_hex(p, version ? (time + version) * UINT64_C(0xbf58476d1ce4e5b9) : time);
    *p++ = '"';
    *p = '\0';
    return (size_t)(p - out);
}

static bool is_etag_byte(unsigned char c)
{
    return c > ' ' && c != '"' && c != 0x7f;
}

static bool is_weak(struct mk_str etag)
{
    return mk_str_starts(etag, MK_STR("W/"));
}

/* Removes an entity tag from `s`. A backslash in it has no special meaning. Returns false if there is none. */
static bool read_etag(struct mk_str *s, struct mk_str *ret)
{
    size_t i = is_weak(*s) ? 2 : 0;
    if (i >= s->len || s->p[i] != '"')
        return false;
    for (i++; i < s->len && is_etag_byte((unsigned char)s->p[i]); i++)
        ;
    if (i == s->len || s->p[i] != '"')
        return false;
    *ret = mk_str(s->p, i + 1);
    *s = mk_str_after(*s, i + 1);
    return true;
}

/* Compares by the strong or the weak comparison (RFC 9110 section 8.8.3.2). */
static bool is_same_etag(struct mk_str a, struct mk_str b, bool strong)
{
    if (strong)
        return a.len && !is_weak(a) && mk_str_eq(a, b);
    if (is_weak(a))
        a = mk_str_after(a, 2);
    if (is_weak(b))
        b = mk_str_after(b, 2);
    return a.len && mk_str_eq(a, b);
}

bool mk__validators_match_etags(struct mk_str list, struct mk_str etag, bool strong)
{
    struct mk_str one;
    bool found = false, after_comma = true;

    if (mk_str_eq(mk_str_trim(list), MK_STR("*")))
        return true;
    while ((list = mk_str_trim(list)).len) {
        if (list.p[0] == ',') {
            list = mk_str_after(list, 1);
            after_comma = true;
            continue;
        }
        if (!after_comma || !read_etag(&list, &one))
            return false;
        after_comma = false;
        found |= is_same_etag(one, etag, strong);
    }
    return found;
}

/*
 * Tells whether the resource is newer than the date of a field. Returns `otherwise` if one of them has no valid date.
 */
static bool is_newer(const struct mk__conditions *in, struct mk_str field, bool otherwise)
{
    int64_t date;
    if (!field.p || in->mtime == MK__MTIME_NONE || mk__date_parse(field, in->now, &date) < 0)
        return otherwise;
    return in->mtime > date;
}

enum mk__condition mk__validators_check(const struct mk__conditions *in)
{
    if (in->if_match.p) {
        if (!mk__validators_match_etags(in->if_match, in->etag, true))
            return MK__CONDITION_FAILED;
    } else if (is_newer(in, in->if_unmodified_since, false)) {
        return MK__CONDITION_FAILED;
    }
    if (in->if_none_match.p) {
        if (!mk__validators_match_etags(in->if_none_match, in->etag, false))
            return MK__CONDITION_PASS;
        return MK__CONDITION_NOT_MODIFIED;
    }
    if (!is_newer(in, in->if_modified_since, true))
        return MK__CONDITION_NOT_MODIFIED;
    return MK__CONDITION_PASS;
}

bool mk__validators_check_if_range(struct mk_str value, struct mk_str etag, int64_t mtime, int64_t now)
{
    struct mk_str one, rest = mk_str_trim(value);
    int64_t date;

    if (read_etag(&rest, &one))
        return rest.len == 0 && is_same_etag(one, etag, true);
    if (mtime == MK__MTIME_NONE || mk__date_parse(rest, now, &date) < 0)
        return false;
    return date == mtime && mtime <= now - MK__ETAG_STRONG_SECONDS;
}
