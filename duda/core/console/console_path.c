// SPDX-License-Identifier: Apache-2.0
/*
 * The paths of a console (console_path.h).
 */
#include "console/console_path.h"

#include <stdbool.h>
#include <string.h>

static bool has_bad_segment(struct mk_str path)
{
    for (size_t at = 0; at < path.len;) {
        const char *begin = path.p + at + 1, *end = memchr(begin, '/', path.len - at - 1);
        struct mk_str segment = mk_str(begin, end ? (size_t)(end - begin) : path.len - at - 1);
        at += segment.len + 1;
        if (mk_str_is_dots(segment) || (!segment.len && at < path.len))
            return true;
    }
    return false;
}

const char *console_path_check(struct mk_str path)
{
    if (path.len < 2 || path.p[0] != '/' || path.p[1] == '/')
        return "it is a path below the service's URL, such as /console/";
    if (path.len > CONSOLE_PATH_BYTES_MAX)
        return "it is longer than 255 bytes";
    if (!mk_str_is_name(path, "-._~/"))
        return "it has letters, digits, \"-\", \".\", \"_\", \"~\" and \"/\" only";
    return has_bad_segment(path) ? "it has an empty segment, or \".\" or \"..\"" : NULL;
}

struct mk_str console_path_trim(struct mk_str path)
{
    return path.len && path.p[path.len - 1] == '/' ? mk_str(path.p, path.len - 1) : path;
}

enum console_view console_path_find(struct mk_str path, struct mk_str rest)
{
    static const struct {
        char rest[16];
        enum console_view view;
    } rows[] = {
        {"", CONSOLE_SLASH},
        {"/", CONSOLE_PAGE},
        {"/messages", CONSOLE_MESSAGES},
        {"/map", CONSOLE_MAP},
    };
    if (!path.len || !mk_str_starts(rest, path))
        return CONSOLE_NONE;
    rest = mk_str(rest.p + path.len, rest.len - path.len);
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (mk_str_eq(mk_str_c(rows[i].rest), rest))
            return rows[i].view;
    return CONSOLE_NONE;
}
