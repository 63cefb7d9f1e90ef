// SPDX-License-Identifier: Apache-2.0
/*
 * [ALIAS]: paths that are served from a folder next to the document root, or from one file. Each is a separate site
 * with the settings of its host, but without TryFiles. Folders that other plugins add are aliases too, with TryFiles.
 */
#ifndef STATIC_ALIAS_H
#define STATIC_ALIAS_H

#include <monkey/plugin.h>

#include "site.h"

/* A section [ALIAS]. */
struct alias_rule {
    struct mk_pattern match; /* a prefix or an exact path */
    struct mk_str to;
};

extern const struct mk_conf_key mk__static_alias_keys[]; /* of struct alias_rule */

/*
 * Opens the aliases of the host, in the order of their sections. Call mk__static_alias_free() in any case.
 * Returns 0, -EINVAL (errors were reported) or -ENOMEM.
 */
int mk__static_alias_load(struct mk_host *host, struct static_site *site, const struct mk_conf_section *section);
void mk__static_alias_free(struct static_site *site);
/* Sets how sources are recognized below each alias. In generation_check. */
void mk__static_alias_init_sources(struct static_site *site);

/* Opens a folder of mk_host_folders() as an alias after the others. Returns 0, -EINVAL (reported) or -ENOMEM. */
int mk__static_alias_add_folder(struct mk_host *host, struct static_site *site, const struct mk_host_folder *folder);

/* Passes the folder of each alias to `fn`. */
void mk__static_alias_each_place(const struct static_site *site, mk_file_place_fn fn, void *ctx);

/*
 * Calls `fn` for each [ALIAS] that could be opened. `name`: of an exact one the file in the folder, as "/a"; else
 * empty.
 */
typedef void (*alias_section_fn)(const struct static_site *alias, const struct alias_rule *section, struct mk_str name,
                                 void *ctx);
void mk__static_alias_each_section(const struct static_site *site, alias_section_fn fn, void *ctx);

/* Returns the pattern of the first [ALIAS] that has the path; NULL: none has it. */
const struct mk_pattern *mk__static_alias_find_pattern(const struct static_site *site, struct mk_str path);
/* Finds the first alias of `at->site` that matches `at->path`; sets `at` to its site. Returns false if none does. */
bool mk__static_alias_find(struct static_location *at);

/* Returns true if the path is the root of an alias or user without its slash. */
static inline bool alias_needs_slash(const struct static_location *at)
{
    return at->path.len == 0;
}

#endif
