// SPDX-License-Identifier: Apache-2.0
/*
 * Asks which files are sources (sources.h): names before they are opened, and what links lead to afterwards.
 */
#include "sources.h"

#include <monkey/program.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void mk__static_sources_init(struct static_site *site)
{
    bool has = mk_host_has_sources(site->owner);
    site->sources = !has ? SOURCES_NONE : site->settings->symlinks == SYMLINKS_OFF ? SOURCES_BY_NAME : SOURCES_BY_FILE;
}

bool mk__static_sources_find_path(const struct static_site *site, struct mk_str path)
{
    return mk_host_is_source(site->owner, MK_SOURCE_PATH, path);
}

/* Asks about "FOLDER/NAME". A name that is too long is no file's. */
static bool is_source(const struct static_site *site, enum mk_source_name kind, struct mk_str folder, const char *name)
{
    MK_UNINITIALIZED char text[2 * STATIC_NAME_BYTES];
    int n = snprintf(text, sizeof(text), "%.*s/%s", MK_STR_ARG(folder), name);
    return n < (int)sizeof(text) && mk_host_is_source(site->owner, kind, mk_str(text, (size_t)n));
}

/* Without links the name of the file is that of the root and the one below it. */
static bool is_source_file(struct static_site *site, const char *name)
{
    MK_UNINITIALIZED char root[STATIC_NAME_BYTES];
    pthread_mutex_lock(&site->lock);
    size_t n = site->path.len < sizeof(root) ? site->path.len : 0;
    if (n)
        memcpy(root, site->path.p, n);
    pthread_mutex_unlock(&site->lock);
    return is_source(site, MK_SOURCE_FILE, mk_str(root, n), name);
}

bool mk__static_sources_find_name(struct static_site *site, const char *name)
{
    if (is_source(site, MK_SOURCE_PATH, site->prefix, name))
        return true;
    return site->sources == SOURCES_BY_NAME && is_source_file(site, name);
}

bool mk__static_sources_run_name(const struct static_site *site, const char *name)
{
    MK_UNINITIALIZED char path[2 * STATIC_NAME_BYTES];
    int n = snprintf(path, sizeof(path), "%.*s/%s", MK_STR_ARG(site->prefix), name);
    return n < (int)sizeof(path) && mk_host_runs_source(site->owner, mk_str(path, (size_t)n));
}

static bool is_source_of(const struct static_site *site, int fd)
{
    return site->prefix.len && mk_host_is_source_below(site->owner, fd, site->root_fd, site->prefix);
}

/*
 * A link may lead to a file of an alias or user that only its path, which is not that of the request, makes a program;
 * with SymLink On also to that of another alias.
 */
static bool is_source_fd(const struct static_site *site, int fd)
{
    if (mk_host_is_source_fd(site->owner, fd) || is_source_of(site, fd))
        return true;
    const struct static_site *of_host = site->of_host ? site->of_host : site;
    const struct static_site *other = site->settings->symlinks == SYMLINKS_ON ? of_host->elsewhere : NULL;
    while (other && !is_source_of(other, fd))
        other = other->elsewhere;
    return other != NULL;
}

int mk__static_sources_check(const struct static_site *site, int fd)
{
    assert(site->sources == SOURCES_BY_FILE);
    if (fd < 0 || !is_source_fd(site, fd))
        return fd;
    close(fd);
    return -ENOENT;
}
