// SPDX-License-Identifier: Apache-2.0
/*
 * Splits a path into the name of a script and what follows it (<monkey/cgi.h>).
 */
#include <monkey/cgi.h>

static bool ends_with(struct mk_str segment, struct mk_str extension)
{
    return segment.len > extension.len && extension.len &&
           memcmp(segment.p + segment.len - extension.len, extension.p, extension.len) == 0;
}

static bool has_extension(struct mk_str segment, const struct mk_conf_list *extensions)
{
    for (uint32_t i = 0; i < extensions->n; i++)
        if (ends_with(segment, extensions->items[i]))
            return true;
    return false;
}

bool mk_cgi_split(struct mk_str path, const struct mk_conf_list *extensions, struct mk_str *ret_script,
                  struct mk_str *ret_info)
{
    for (size_t start = 0, end; start < path.len; start = end + 1) {
        const char *slash = memchr(path.p + start, '/', path.len - start);
        end = slash ? (size_t)(slash - path.p) : path.len;
        if (!has_extension(mk_str(path.p + start, end - start), extensions))
            continue;
        *ret_script = mk_str(path.p, end);
        *ret_info = mk_str_after(path, end);
        return true;
    }
    return false;
}
