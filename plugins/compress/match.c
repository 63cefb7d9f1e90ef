// SPDX-License-Identifier: Apache-2.0
/*
 * The comparisons of match.h, without regard to case.
 */
#include "match.h"

#include <assert.h>

static bool is_type_name(struct mk_str s)
{
    return mk_str_is_name(s, "!#$&^_.+-"); /* RFC 6838 section 4.2 */
}

bool match_is_type_pattern(struct mk_str s)
{
    const char *slash = memchr(s.p, '/', s.len);
    if (!slash)
        return s.len > 2 && mk_str_starts(s, MK_STR("*+")) && is_type_name(mk_str_after(s, 2));
    struct mk_str type = mk_str(s.p, (size_t)(slash - s.p)), subtype = mk_str(slash + 1, s.len - type.len - 1);
    return is_type_name(type) && (is_type_name(subtype) || mk_str_eq(subtype, MK_STR("*")));
}

bool match_type(struct mk_str pattern, struct mk_str type)
{
    assert(pattern.len > 0);
    type = mk_str_trim(mk_str_until(type, ";"));
    if (mk_str_ieq(pattern, type))
        return true;
    if (mk_str_ieq(type, MK_STR("text/event-stream")))
        return false;
    if (pattern.p[0] == '*')
        return type.len >= pattern.len && mk_str_iends(type, mk_str_after(pattern, 1));
    size_t n = pattern.len - 1;
    return pattern.p[n] == '*' && type.len > n && mk_str_ieq(mk_str(pattern.p, n), mk_str(type.p, n));
}
