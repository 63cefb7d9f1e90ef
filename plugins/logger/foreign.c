// SPDX-License-Identifier: Apache-2.0
/*
 * The table of Apache's directives (foreign.h).
 */
#include "foreign.h"

#include <stddef.h>

static const struct {
    struct mk_str start;
    const char *here;
} directives[] = {
    {MK_STR("%h"), "client"},
    {MK_STR("%a"), "client"},
    {MK_STR("%u"), "user"},
    {MK_STR("%t"), "time_clf"},
    {MK_STR("%r"), "request"},
    {MK_STR("%>s"), "status"},
    {MK_STR("%s"), "status"},
    {MK_STR("%b"), "body_bytes_out"},
    {MK_STR("%B"), "body_bytes_out"},
    {MK_STR("%O"), "bytes_out"},
    {MK_STR("%D"), "request_time_us"},
    {MK_STR("%m"), "method"},
    {MK_STR("%U"), "path"},
    {MK_STR("%v"), "host"},
    {MK_STR("%V"), "host"},
    {MK_STR("%{"), "header_NAME"},
};

const char *foreign_find_directive(struct mk_str s)
{
    for (size_t i = 0; i < MK_COUNT_OF(directives); i++)
        if (mk_str_starts(s, directives[i].start))
            return directives[i].here;
    return NULL;
}
