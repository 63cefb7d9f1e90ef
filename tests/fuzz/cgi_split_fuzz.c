// SPDX-License-Identifier: Apache-2.0
/*
 * Splitting paths: the first line of the input is an extension, the rest a path. The two parts are the path, the script
 * ends with the extension, and no shorter one would do.
 */
#include <monkey/kit/cgi.h>

#include <stdlib.h>

static bool ends_with(struct mk_str s, struct mk_str end)
{
    return s.len >= end.len && (!end.len || memcmp(s.p + s.len - end.len, end.p, end.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *lf = size ? memchr(text, '\n', size) : NULL;
    if (!lf)
        return 0;
    struct mk_str extension = mk_str(text, (size_t)(lf - text)), script, info;
    struct mk_str path = mk_str(lf + 1, size - extension.len - 1);
    const struct mk_conf_list list = {.items = &extension, .n = 1};
    if (!mk_cgi_split(path, &list, &script, &info))
        return 0;
    if (script.p != path.p || info.p != path.p + script.len || script.len + info.len != path.len)
        abort();
    if (!ends_with(script, extension) || (info.len && info.p[0] != '/'))
        abort();
    struct mk_str before = mk_str(script.p, script.len - 1), part, rest;
    const char *slash = before.len ? memrchr(before.p, '/', before.len) : NULL;
    if (slash && mk_cgi_split(mk_str(path.p, (size_t)(slash - path.p)), &list, &part, &rest))
        abort();
    return 0;
}
