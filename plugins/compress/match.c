// SPDX-License-Identifier: Apache-2.0
/*
 * The comparisons of match.h, without regard to case.
 */
#include "match.h"

#include <assert.h>

static bool is_token(struct mk_str s)
{
    static const char marks[] = "!#$&^_.+-";
    for (size_t i = 0; i < s.len; i++) {
        char c = mk_lower(s.p[i]);
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !memchr(marks, c, sizeof(marks) - 1))
            return false;
    }
    return s.len > 0;
}

bool match_is_type_pattern(struct mk_str s)
{
    const char *slash = memchr(s.p, '/', s.len);
    if (!slash)
        return s.len > 2 && mk_str_starts(s, MK_STR("*+")) && is_token(mk_str_after(s, 2));
    struct mk_str type = mk_str(s.p, (size_t)(slash - s.p)), subtype = mk_str(slash + 1, s.len - type.len - 1);
    return is_token(type) && (is_token(subtype) || mk_str_eq(subtype, MK_STR("*")));
}

static bool ends_with(struct mk_str s, struct mk_str end)
{
    return s.len > end.len && mk_str_ieq(mk_str(s.p + s.len - end.len, end.len), end);
}

bool match_type(struct mk_str pattern, struct mk_str type)
{
    assert(pattern.len > 0);
    const char *semicolon = type.len ? memchr(type.p, ';', type.len) : NULL;
    if (semicolon)
        type.len = (size_t)(semicolon - type.p);
    type = mk_str_trim(type);
    if (mk_str_ieq(pattern, type))
        return true;
    if (mk_str_ieq(type, MK_STR("text/event-stream")))
        return false;
    if (pattern.p[0] == '*')
        return ends_with(type, mk_str_after(pattern, 1));
    size_t n = pattern.len - 1;
    return pattern.p[n] == '*' && type.len > n && mk_str_ieq(mk_str(pattern.p, n), mk_str(type.p, n));
}
