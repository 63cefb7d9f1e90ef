// SPDX-License-Identifier: Apache-2.0
/*
 * Reads If-Match and If-None-Match (conditions.h).
 */
#include "conditions.h"

/* Compares weakly (RFC 9110 section 8.8.3.2). `tag.p` NULL: looks for `*` only. */
static bool has_tag(struct mk_str list, struct mk_str tag)
{
    struct mk_str one;
    while (mk_str_next(&list, &one)) {
        if (mk_str_eq(one, MK_STR("*")))
            return true;
        if (mk_str_starts(one, MK_STR("W/")))
            one = mk_str_after(one, 2);
        if (tag.p && mk_str_eq(one, tag))
            return true;
    }
    return false;
}

bool conditions_fail(struct mk_request *req)
{
    struct mk_str list = mk_request_header_by_name(req, MK_STR("If-Match"));
    return list.p && !has_tag(list, MK_STR_NONE);
}

bool conditions_have_tag(struct mk_request *req, struct mk_str tag)
{
    return has_tag(mk_request_header_by_name(req, MK_STR("If-None-Match")), tag);
}
