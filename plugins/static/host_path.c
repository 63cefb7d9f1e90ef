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
#include <stdio.h>
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

/* ── for an operator ── */

/* Adds the name that an open file has, behind all links. */
static void add_name(int fd, struct mk_buf *out)
{
    MK_UNINITIALIZED char link[32], name[STATIC_NAME_BYTES];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof(name));
    mk_buf_add(out, name, n > 0 ? (size_t)n : 0);
}

static void add_file(const struct find_result *found, struct mk_buf *out)
{
    mk_buf_adds(out, MK_STR("the file "));
    add_name(found->fd, out);
    mk_buf_addf(out, " with %llu bytes", (unsigned long long)found->bytes);
}

/* Adds the first link on a path that is not followed. Returns false if there is none. */
static bool add_link(const struct static_site *site, struct mk_str path, struct mk_buf *out)
{
    static const char *const modes[] = {[SYMLINKS_OFF] = "Off", [SYMLINKS_INSIDE] = "Inside", [SYMLINKS_ON] = "On"};
    MK_UNINITIALIZED char name[STATIC_NAME_BYTES], target[STATIC_NAME_BYTES];
    struct mk_str rest = mk_str_after(path, 1);
    struct stat st;
    while (rest.len && path.len < sizeof(name)) {
        mk_str_split(&rest, '/');
        struct mk_str until = mk_str_strip_end(mk_str(path.p + 1, path.len - 1 - rest.len), "/");
        snprintf(name, sizeof(name), "%.*s", MK_STR_ARG(until));
        ssize_t n = readlinkat(site->root_fd, name, target, sizeof(target));
        if (n <= 0)
            continue;
        mk_buf_addf(out, "404: %s/%s is a link to %.*s, ", site->configured_path.p, name, (int)n, target);
        if (fstatat(site->root_fd, name, &st, 0) < 0)
            mk_buf_adds(out, MK_STR("where there is nothing"));
        else
            mk_buf_addf(out, "which SymLink %s does not follow", modes[site->settings->symlinks]);
        return true;
    }
    return false;
}

static void add_nothing(const struct static_location *at, const struct find_result *found, struct mk_buf *out)
{
    bool is_link = found->err == ELOOP || found->err == EXDEV || found->err == ENOENT;
    if (is_link && !userdir_is_matched(at) && at->site->root_fd >= 0 && add_link(at->site, at->path, out))
        return;
    struct find_result folder = {.kind = FOUND_NOTHING, .fd = -1};
    if (at->path.p[at->path.len - 1] == '/' && !found->status)
        folder = find_folder(at);
    if (found->status) {
        mk_buf_addf(out, "%d: no name of TryFiles is there", found->status);
    } else if (folder.kind == FOUND_DIRECTORY) {
        mk_buf_adds(out, MK_STR("the folder "));
        add_name(folder.fd, out);
        mk_buf_adds(out, MK_STR(" has no index"));
    } else {
        mk_buf_addf(out, "there is no file: %s", strerror(found->err));
    }
    if (folder.fd >= 0)
        close(folder.fd);
}

bool mk__static_host_path_explain(struct static_site *site, struct mk_str path, struct mk_buf *out)
{
    char user[USERDIR_NAME_BYTES + 1];
    struct static_location at = locate_path(site, path, user);
    struct find_result found = {.kind = FOUND_DIRECTORY, .fd = -1};
    if (!alias_needs_slash(&at))
        found = find_file(&at, false);
    if (found.kind == FOUND_FILE)
        add_file(&found, out);
    else if (found.kind == FOUND_DIRECTORY)
        mk_buf_addf(out, "a redirect to the path with a slash");
    else if (found.kind == FOUND_PROGRAM)
        mk_buf_addf(out, "the index is a program: the plugin that takes %.*s%.*s runs it", MK_STR_ARG(path),
                    MK_STR_ARG(found.name));
    else
        add_nothing(&at, &found, out);
    mk__static_open_release(&found);
    return true;
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
