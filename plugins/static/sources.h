// SPDX-License-Identifier: Apache-2.0
/*
 * Files that are programs of other plugins, and copies of them: they are never sent (mk_host_is_source()).
 */
#ifndef STATIC_SOURCES_H
#define STATIC_SOURCES_H

#include "site.h"

/* Sets how the sources of the site's host are recognized. In generation_check. */
void mk__static_sources_init(struct static_site *site);
/* Return whether the path of the host, or a name below the root, is that of a source; links are not followed. */
bool mk__static_sources_find_path(const struct static_site *site, struct mk_str path);
bool mk__static_sources_find_name(struct static_site *site, const char *name);
/* Returns whether a name below the root is that of a source whose path gets to the plugin that runs it. */
bool mk__static_sources_run_name(const struct static_site *site, const char *name);
/*
 * Returns `fd`, or closes it and returns -ENOENT if it is a source. For SOURCES_BY_FILE; `fd` may be -errno. A cache
 * of names cannot be used then, because what a link leads to is not known before it is opened.
 */
int mk__static_sources_check(const struct static_site *site, int fd);

/* The same for hosts that may have none. */
static inline bool sources_have_path(const struct static_site *at, struct mk_str path)
{
    return MK_UNLIKELY(at->sources != SOURCES_NONE) && mk__static_sources_find_path(at, path);
}

static inline bool sources_have_name(struct static_site *at, const char *name)
{
    return MK_UNLIKELY(at->sources != SOURCES_NONE) && mk__static_sources_find_name(at, name);
}

static inline bool sources_run_name(const struct static_site *at, const char *name)
{
    return MK_UNLIKELY(at->sources != SOURCES_NONE) && mk__static_sources_run_name(at, name);
}

static inline int sources_check(const struct static_site *at, int fd)
{
    return MK_UNLIKELY(at->sources == SOURCES_BY_FILE) ? mk__static_sources_check(at, fd) : fd;
}

#endif
