// SPDX-License-Identifier: Apache-2.0
/*
 * Hosts: their sites are opened when a configuration is loaded, and tell other plugins of their files.
 */
#include "static.h"

#include <monkey/base/arena.h>
#include <monkey/base/escape.h>
#include <monkey/base/file.h>
#include <monkey/program.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* ── files and folders by a path of the host; may wait for a disk ── */

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

static int open_location(const struct static_location *at, uint32_t flags)
{
    bool has_slash = at->path.p[at->path.len - 1] == '/';
    struct find_result found = {.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT};
    if (!(flags & MK_OPEN_FOLDER))
        found = find_file(at, flags & MK_OPEN_SOURCE);
    if (found.kind == FOUND_FILE) {
        assert(found.fd >= 0);
        if (found.name.p == at->path.p || has_slash)
            return found.fd;
        close(found.fd); /* it has another path, and is not the index of this one */
        return -ENOENT;
    }
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

/* Adds the path of an index, or of what TryFiles has led to. */
static void add_decided(const struct static_site *site, const struct find_result *found, struct mk_str path,
                        struct mk_buf *decided)
{
    MK_UNINITIALIZED char text[STATIC_NAME_BYTES];
    bool is_found = found->kind == FOUND_FILE || found->kind == FOUND_PROGRAM;
    bool has_path = is_found && (found->is_index || found->tried);
    size_t n = has_path ? mk__static_find_write_path(site, found, path, text) : 0;
    if (!mk_str_eq(mk_str(text, n), path))
        mk_buf_add(decided, text, n);
}

bool mk__static_host_explain_path(const struct mk_host *host, struct mk_str path, struct mk_buf *out,
                                  struct mk_buf *decided)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
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
    add_decided(at.site, &found, path, decided);
    mk__static_open_release(&found);
    return true;
}

/* ── for a cache ── */

static int load_path(const struct mk_host *host, struct mk_str path, struct mk_file_loader *loader)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    char user[USERDIR_NAME_BYTES + 1];
    const struct find_mode mode = {.accept = &no_codings, .loader = loader};
    if (!site || mk__static_open_is_hidden(site, path) || sources_have_path(site, path))
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

static void each_place(const struct mk_host *host, mk_file_place_fn fn, void *ctx)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    if (site)
        mk__static_alias_each_place(site, fn, ctx);
    if (!site || site->root_fd < 0)
        return;
    struct mk_file_place place = mk__static_open_place(site);
    fn(&place, ctx);
}

/* ── hosts ── */

/* ── loading ── */

void mk__static_host_stop(struct mk_host *host, void *state)
{
    struct static_site *site = state;
    (void)host;
    mk__static_errors_free(site);
    mk__static_alias_free(site);
    if (site->root_fd >= 0)
        mk__static_root_close(site);
    mk_account_free(NULL, site, sizeof(*site));
}

/*
 * Opens the document root. If that fails, root_fd is -1, and what needs no root is still checked. A host without one
 * has no own files, only those of aliases and users.
 */
static int open_root(struct mk_host *host, struct static_site *site, const struct static_host *conf)
{
    int err = conf->root.len ? mk__static_root_open(site, conf->root) : -ENOENT;
    if (err == 0 && access(conf->root.p, X_OK) < 0) { /* O_PATH alone checks no permission */
        err = -errno;
        mk__static_root_close(site);
    }
    if (err == 0)
        return 0;
    site->root_fd = -1;
    site->path = MK_STR_NONE;
    site->next_check_ms = UINT64_MAX;
    if (!conf->root.len)
        return 0; /* an error was reported if there should be one */
    mk_host_error(host, conf, offsetof(struct static_host, root), 0, "cannot open the document root %s: %s",
                  conf->root.p, strerror(-err));
    return err == -ENOMEM ? err : -EINVAL;
}

/* Tells whether a name has what URLs have, and names of files hardly: an escape, a query, a variable. */
static MK_COLD bool is_of_url(struct mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (mk_percent_value(name.p + i, name.len - i) >= 0 || memchr("?{", name.p[i], 2))
            return true;
    return false;
}

static MK_COLD bool has_file(const struct static_site *site, struct mk_str name)
{
    int fd = mk__static_open_beneath(site->root_fd, name.p);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Refuses names of TryFiles that are written as in a URL, and warns of those of Indexfile, unless there is such a file.
 */
static MK_COLD int check_names(struct mk_host *host, const struct static_site *site)
{
    const struct mk_conf_list *tries = &site->host->try_files, *index = &site->host->index;
    int result = 0;
    for (uint32_t i = 0; site->root_fd >= 0 && i < site->host->n_tries; i++) {
        struct mk_str name = tries->items[i];
        if (!mk_str_starts(name, MK_STR("/")) || memchr(name.p, '$', name.len) || !is_of_url(name) ||
            has_file(site, mk_str_after(name, 1)))
            continue;
        mk_host_error(host, site->host, offsetof(struct static_host, try_files), i,
                      "there is no file %.*s below the document root: a name is written as it is, without escapes, "
                      "queries and variables but $path",
                      MK_STR_ARG(name));
        result = -EINVAL;
    }
    for (uint32_t i = 0; site->root_fd >= 0 && i < index->n; i++)
        if (is_of_url(index->items[i]) && !has_file(site, index->items[i]))
            mk_host_warn(host, site->host, offsetof(struct static_host, index), i,
                         "the document root has no file %.*s: a name is written as it is, without escapes, queries and "
                         "variables",
                         MK_STR_ARG(index->items[i]));
    return result;
}

int mk__static_host_start(struct mk_host *host, void **ret_state)
{
    const struct static_host *conf = mk_host_conf(host, &mk__static_settings_sections[SETTINGS_HOST]);
    struct static_site *site = mk_account_alloc(NULL, sizeof(*site));
    if (!site)
        return -ENOMEM;
    *site = (struct static_site){.host = conf, .owner = host};
    site->settings = mk_host_server_conf(host, &mk__static_settings_sections[SETTINGS_SERVER]);
    site->hints_at_listing = mk_generation_is_one_shot(mk_host_generation(host));
    site->settings = mk__static_settings_merge(site, site->settings);
    int err = open_root(host, site, conf);
    if (err == 0)
        err = check_names(host, site);
    if (err != -ENOMEM) {
        int pages = mk__static_errors_load(host, site, &mk__static_settings_sections[SETTINGS_ERROR_PAGES]);
        err = err < 0 && pages != -ENOMEM ? err : pages;
    }
    if (err != -ENOMEM) {
        int aliases = mk__static_alias_load(host, site, &mk__static_settings_sections[SETTINGS_ALIAS]);
        err = err < 0 && aliases != -ENOMEM ? err : aliases;
    }
    site->has_files = site->root_fd >= 0 || site->aliases || conf->user_dir.len;
    if (err < 0) {
        mk__static_host_stop(host, site);
        return err;
    }
    *ret_state = site;
    return 0;
}

static int add_folders(struct mk_host *host, struct static_site *site)
{
    int result = 0;
    for (const struct mk_host_folder *f = mk_host_folders(host); f && result != -ENOMEM; f = f->next) {
        int err = mk__static_alias_add_folder(host, site, f);
        site->has_files |= err == 0;
        result = err < 0 ? err : result;
    }
    return result;
}

/* Opens the folders that plugins before this one have added, and learns which files are programs of others. */
static int check_host(struct mk_host *host)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    if (!site)
        return 0;
    int err = add_folders(host, site);
    mk__static_sources_init(site);
    mk__static_alias_init_sources(site);
    site->decides_access = mk_host_decides_access(host);
    int pages = mk__static_errors_check(host, site);
    return err < 0 ? err : pages;
}

/* A check says once what the log of a server says. */
static void warn_of_openat2(struct mk_generation *g)
{
    struct mk_host *host = mk_generation_first_host(g);
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    MK_BUF_ON_STACK(text, 300);
    if (site && site->host->root.len && mk_generation_is_check(g) && mk_file_explain_openat2(&text))
        mk_host_warn(host, site->host, offsetof(struct static_host, root), 0, "%s", mk_buf_cstr(&text));
}

int mk__static_host_check_all(struct mk_generation *g, void *state)
{
    int result = 0;
    (void)state;
    for (struct mk_host *host = mk_generation_first_host(g); host && result != -ENOMEM; host = mk_host_next(host)) {
        int err = check_host(host);
        result = err < 0 ? err : result;
    }
    if (result == 0)
        mk__static_other_programs_check(g);
    warn_of_openat2(g);
    return result;
}

/* ── what other plugins ask for ── */

int mk__static_host_open_path(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    return site ? mk__static_host_path_open(site, path, flags) : -ENOENT;
}

static bool hides_path(const struct mk_host *host, struct mk_str path)
{
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    return !site || mk__static_open_is_hidden(site, path);
}

static enum mk_tries get_tries(const struct mk_host *host)
{
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    return site ? mk__static_find_get_tries(site->host) : MK_TRIES_NOTHING;
}

static int find_index(const struct mk_host *host, struct mk_str path, struct mk_buf *out)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    MK_UNINITIALIZED char user[USERDIR_NAME_BYTES + 1], text[STATIC_NAME_BYTES];
    if (!site || !mk_str_ends(path, MK_STR("/")) || mk__static_open_is_hidden(site, path))
        return -ENOENT;
    struct static_location at = locate_path(site, path, user);
    mk__static_root_refresh(at.site);
    struct find_result found = find_file(&at, false);
    bool is_found = found.kind == FOUND_FILE || found.kind == FOUND_PROGRAM;
    size_t n = is_found ? mk__static_find_write_path(at.site, &found, path, text) : 0;
    mk__static_open_release(&found);
    mk_buf_add(out, text, n);
    return n ? out->err : found.kind == FOUND_NOTHING && found.err ? -found.err : -ENOENT;
}

const struct mk_file_server mk__static_host_file_server = {.load_path = load_path,
                                                           .each_place = each_place,
                                                           .hides = hides_path,
                                                           .tries = get_tries,
                                                           .find_index = find_index,
                                                           .find_alias = mk__static_alias_find_pattern};

void mk__static_host_explain(const struct mk_host *host, struct mk_explain *e)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    struct static_location at = {site, e->path, MK_STR_NONE};
    if (e->phase != MK_EXPLAIN_CONTENT || !site || !site->has_files)
        return;
    if (sources_have_path(site, e->path)) {
        mk_explain_add(e, host, NULL, MK_EXPLAIN_NOTE, "is a program, and never sent");
        return;
    }
    bool reads = mk_str_eq(e->method, MK_STR("GET")) || mk_str_eq(e->method, MK_STR("HEAD"));
    if (!reads || mk__static_open_is_hidden(site, e->path))
        mk_explain_add(e, host, NULL, MK_EXPLAIN_ANSWERS, "%s", reads ? "404: hidden" : "405, or 501");
    else if (!mk__static_alias_find(&at) && mk__static_userdir_match(&at))
        mk_explain_add(e, host, NULL, MK_EXPLAIN_MAYBE, "sends a file below a folder of UserDir");
    else if (at.site->root_fd >= 0)
        mk_explain_add(e, host, NULL, MK_EXPLAIN_MAYBE, "sends a file below %s", at.site->configured_path.p);
}
