// SPDX-License-Identifier: Apache-2.0
/*
 * Splits a path into the name of a script and what follows it (<monkey/kit/cgi.h>).
 */
#include <monkey/kit/cgi.h>

static bool has_extension(struct mk_str segment, const struct mk_conf_list *extensions)
{
    for (uint32_t i = 0; i < extensions->n; i++) {
        struct mk_str extension = extensions->items[i];
        if (extension.len && segment.len > extension.len && mk_str_ends(segment, extension))
            return true;
    }
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
