// SPDX-License-Identifier: Apache-2.0
/*
 * Opens files and folders by a path of the host (host_path.h). May wait for a disk.
 */
#include "host_path.h"

#include <monkey/plugin.h>

#include "alias.h"
#include "find.h"
#include "open.h"
#include "root.h"
#include "sources.h"
#include "userdir.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

static const struct mk_accept no_codings;

static struct find_result find_folder(const struct static_location *at)
{
    return userdir_is_matched(at) ? mk__static_userdir_find_folder(at) : mk__static_find_folder(at->site, at->path);
}

static struct find_result find_file(const struct static_location *at, bool sources)
{
    const struct find_mode mode = {.accept = &no_codings, .sources = sources};
    return userdir_is_matched(at) ? mk__static_userdir_find(at, &mode)
                                  : mk__static_find_path_with(at->site, at->path, &mode);
}

/* Returns the descriptor of a file that has this path, or is the index of it; else closes it. */
static int take_file(const struct find_result *found, struct mk_str path)
{
    assert(found->kind == FOUND_FILE && found->fd >= 0);
    if (found->name.p == path.p || path.p[path.len - 1] == '/')
        return found->fd;
    close(found->fd);
    return -ENOENT;
}

static int open_location(const struct static_location *at, uint32_t flags)
{
    bool has_slash = at->path.p[at->path.len - 1] == '/';
    struct find_result found = {.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    if (!(flags & MK_OPEN_FOLDER))
        found = find_file(at, flags & MK_OPEN_SOURCE);
    if (found.kind == FOUND_FILE)
        return take_file(&found, at->path);
    if (found.kind == FOUND_DIRECTORY)
        return -EISDIR;
    if (found.kind == FOUND_PROGRAM) /* there is nothing to send, and the folder is seen as one without an index */
        found = (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    if (!has_slash || found.status || !mk__static_open_is_missing(found.err))
        return found.status ? -ENOENT : -found.err;
    found = find_folder(at);
    return found.kind == FOUND_DIRECTORY ? found.fd : -found.err;
}

/* Finds the site of a path, and the path there; `user` gets the name of a user. */
static struct static_location locate_path(struct static_site *site, struct mk_str path,
                                          char user[USERDIR_NAME_BYTES + 1])
{
    struct static_location at = {site, path, MK_STR_NONE};
    if (!mk__static_alias_find(&at) && mk__static_userdir_match(&at)) {
        memcpy(user, at.user.p, at.user.len);
        user[at.user.len] = '\0';
        at.user.p = user;
    }
    return at;
}

int mk__static_host_path_open(struct static_site *site, struct mk_str path, uint32_t flags)
{
    char user[USERDIR_NAME_BYTES + 1];
    if (mk__static_open_is_hidden(site, path))
        return -ENOENT;
    struct static_location at = locate_path(site, path, user);
    if (alias_needs_slash(&at))
        return -EISDIR;
    mk__static_root_refresh(at.site); /* no request for a file may come that would do that */
    return open_location(&at, flags);
}

/* ── for a cache ── */

int mk__static_host_path_load(struct static_site *site, struct mk_str path, struct mk_file_loader *loader)
{
    char user[USERDIR_NAME_BYTES + 1];
    const struct find_mode mode = {.accept = &no_codings, .loader = loader};
    if (mk__static_open_is_hidden(site, path) || sources_have_path(site, path))
        return -ENOENT;
    struct static_location at = locate_path(site, path, user);
    if (alias_needs_slash(&at))
        return -EISDIR;
    if (userdir_is_matched(&at) || at.site->sources == SOURCES_BY_FILE)
        return -ENOTSUP;
    mk__static_root_refresh(at.site);
    struct find_result found = mk__static_find_path_with(at.site, at.path, &mode);
    mk__static_open_release(&found);
    if (found.kind == FOUND_NOTHING)
        return found.status ? -ENOENT : -found.err;
    return found.kind == FOUND_DIRECTORY ? -EISDIR : 0;
}

void mk__static_host_path_each_place(struct static_site *site, mk_file_place_fn fn, void *ctx)
{
    mk__static_alias_each_place(site, fn, ctx);
    if (site->root_fd < 0)
        return;
    struct mk_file_place place = mk__static_open_place(site);
    fn(&place, ctx);
}
