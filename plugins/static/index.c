// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the file of a path, or the index of a directory (index.h), and selects a variant.
 */
#include "index.h"

#include "open.h"
#include "precompressed.h"

#include <errno.h>
#include <stdio.h>

static struct find_result find_index(struct static_site *site, struct mk_str path, const struct mk_accept *accept,
                                     bool cached)
{
    struct find_result f = {.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    MK_UNINITIALIZED char name[STATIC_NAME_BYTES];
    const struct mk_conf_list *index = &site->settings->index;
    for (uint32_t i = 0; i < index->n; i++) {
        int n = snprintf(name, sizeof(name), "%s%.*s", path.p + 1, MK_STR_ARG(index->items[i]));
        if (n >= (int)sizeof(name))
            return f;
        f = open_stat(open_name(site, name, cached), index->items[i]);
        if (!MK_SMALL)
            precompressed_select(site, name, accept, cached, &f);
        if (f.kind == FOUND_FILE || (f.kind == FOUND_NOTHING && f.err != ENOENT))
            return f;
    }
    return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
}

struct find_result index_find(struct static_site *site, struct mk_str path, const struct mk_accept *accept, bool cached)
{
    if (path.p[path.len - 1] == '/')
        return find_index(site, path, accept, cached);
    struct find_result f = open_stat(open_name(site, path.p + 1, cached), path);
    if (!MK_SMALL)
        precompressed_select(site, path.p + 1, accept, cached, &f);
    return f;
}
