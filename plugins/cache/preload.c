// SPDX-License-Identifier: Apache-2.0
/*
 * Loads paths. Which names belong to a path the plugin that serves files decides (struct mk_file_server);
 * the first regular file among them is the one of the path, the others are its variants.
 */
#include "calls.h"

#include <monkey/base/arena.h>
#include <monkey/base/time.h>
#include <monkey/kit/json.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The walk. Folders are opened by their paths, as for a request.
 */
static int push_folder(struct folder_walk *w, size_t path_len)
{
    if (w->depth == FOLDER_WALK_DEPTH_MAX)
        return -ENAMETOOLONG;
    int fd = mk_host_open_path(w->host, mk_str(w->path, path_len), MK_OPEN_FOLDER);
    if (fd < 0)
        return fd;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int err = -errno;
        close(fd);
        return err;
    }
    w->levels[w->depth].dir = dir;
    w->levels[w->depth++].path_len = path_len;
    return 0;
}

static void pop_folder(struct folder_walk *w)
{
    closedir(w->levels[--w->depth].dir);
}

int folder_walk_open(struct folder_walk *w, const struct mk_host *host, const struct mk_file_server *server,
                     struct mk_str path)
{
    w->host = host;
    w->server = server;
    w->depth = 0;
    if (path.len >= sizeof(w->path))
        return -ENAMETOOLONG;
    memcpy(w->path, path.p, path.len);
    w->path[path.len] = '\0';
    return server->hides(host, path) ? -ENOENT : push_folder(w, path.len);
}

void folder_walk_close(struct folder_walk *w)
{
    while (w->depth)
        pop_folder(w);
}

static bool is_folder(DIR *dir, const struct dirent *e)
{
    struct stat st;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Makes the path of an entry of the innermost folder. Returns its length; 0: it is left out. */
static size_t compose_path(struct folder_walk *w, const struct dirent *e, bool is_dir)
{
    size_t at = w->levels[w->depth - 1].path_len;
    int n = snprintf(w->path + at, sizeof(w->path) - at, "%s%s", e->d_name, is_dir ? "/" : "");
    if (n >= (int)(sizeof(w->path) - at) || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return 0;
    struct mk_str path = mk_str(w->path, at + (size_t)n);
    bool is_left_out = w->server->hides(w->host, path) || mk_host_is_source(w->host, MK_SOURCE_PATH, path);
    return is_left_out ? 0 : path.len;
}

bool folder_walk_next(struct folder_walk *w, struct mk_str *ret)
{
    *ret = MK_STR("");
    if (!w->depth)
        return false;
    DIR *dir = w->levels[w->depth - 1].dir;
    const struct dirent *e = readdir(dir);
    if (!e) {
        pop_folder(w);
        return true;
    }
    bool is_dir = is_folder(dir, e);
    size_t n = compose_path(w, e, is_dir);
    if (n && is_dir)
        push_folder(w, n); /* one that cannot be read is left out, as for a client */
    else if (n)
        *ret = mk_str(w->path, n);
    return true;
}

enum { SLICE_MS = 50, READ_BYTES = 64 * 1024, ERRORS_BYTES_MAX = 8 * 1024 * 1024 };

/* ── one name ── */

static struct mk_named_file load_name_of(struct mk_file_loader *base, const struct mk_file_name *name)
{
    struct preload *p = MK_CONTAINER_OF(base, struct preload, base);
    MK_UNINITIALIZED struct cache_lookup l;
    enum load_result result;
    l.cache = p->cache;
    l.worker = NULL;
    l.req = NULL;
    l.host = p->host;
    l.name = name;
    l.policy = p->policy;
    l.now_ms = p->now_ms;
    l.wall_seconds = p->wall_seconds;
    if (!entry_make_key(&l.key, p->cache->store, name, mk_host_mime_id(p->host)))
        return entry_make_missing(ENAMETOOLONG);
    struct mk_named_file named = load_and_wait(&l, p->refresh, &result);
    if (named.kind == MK_FILE_REGULAR && !p->has_result) {
        p->has_result = true;
        p->result = result;
        p->kept_bytes += result == LOAD_KEPT ? named.file.bytes : 0;
        p->is_full |= result == LOAD_NO_ROOM && named.file.bytes <= p->cache->body_bytes_max;
    }
    return named;
}

/* ── one path ── */

static const char *describe_failure(int err)
{
    switch (err) {
    case -ENOENT:
    case -ENOTDIR:
        return "there is no such file";
    case -EISDIR:
        return "it is a folder; its path ends with a slash";
    case -ENOTSUP:
        return "files there are never cached";
    default:
        return strerror(-err);
    }
}

static void add_error(struct preload *p, struct mk_str path, const char *sentence)
{
    if (!p->failed)
        snprintf(p->first_error, sizeof(p->first_error), "%.*s: %s", (int)(path.len < 120 ? path.len : 120), path.p,
                 sentence);
    if (p->failed++ >= PRELOAD_ERRORS_MAX)
        return;
    mk_json_open(&p->errors, NULL, '{');
    mk_json_str(&p->errors, "path", path);
    mk_json_cstr(&p->errors, "error", sentence);
    mk_json_close(&p->errors, '}');
}

static void add_result(struct preload *p, struct mk_str path)
{
    static const char *const sentences[] = {
        [LOAD_NONE] = "it is not a regular file",
        [LOAD_CHANGED] = "it was changed less than three seconds ago",
        [LOAD_NO_ROOM] = "the cache has no room for it",
    };
    switch (p->result) {
    case LOAD_KEPT:
        p->kept++;
        break;
    case LOAD_PRESENT:
        p->present++;
        break;
    default:
        add_error(p, path, sentences[p->result]);
    }
}

/* Loads one path: decoded, normalized and with a NUL after it. */
static void load_path(struct preload *p, struct mk_str path)
{
    const void *rule;
    p->asked++;
    p->policy = directives_find_policy(p->host, path, &rule);
    if (p->policy->mode == FILES_OFF) {
        add_error(p, path, "Files Off: it is not cached");
        return;
    }
    p->has_result = false;
    p->result = LOAD_NONE;
    int err = p->server->load_path(p->host, path, &p->base);
    if (err < 0)
        add_error(p, path, describe_failure(err));
    else
        add_result(p, path);
}

/* ── lists ── */

static void load_entry(struct preload *p, struct mk_str entry)
{
    MK_UNINITIALIZED struct path_list_url url;
    int err = path_list_read(entry, p->is_sitemap, &url);
    struct mk_str shown = mk_str(entry.p, entry.len < PATH_BYTES ? entry.len : PATH_BYTES);
    if (err == 0 && (!url.host.len || mk_host_has_name(p->host, url.host))) {
        load_path(p, mk_str(url.path, url.path_len));
        return;
    }
    p->asked++;
    add_error(p, shown, err < 0 ? path_list_error(err) : "it is a path of another host");
}

/* Returns false at the end of the list. */
static bool load_from_list(struct preload *p)
{
    struct mk_str entry, rest = mk_str(p->list.data + p->list_at, p->list.len - p->list_at);
    bool found = rest.len && (p->is_sitemap ? path_list_next_location : path_list_next_line)(&rest, &entry);
    p->list_at = p->list.len - rest.len;
    if (found)
        load_entry(p, entry);
    return found;
}

/* Returns false at the end of the folder. */
static bool load_from_folder(struct preload *p)
{
    struct mk_str path;
    if (!p->walk || !folder_walk_next(p->walk, &path))
        return false;
    if (path.len)
        load_path(p, path);
    return true;
}

int preload_read_list(struct preload *p, int fd)
{
    for (;;) {
        if (mk_buf_reserve(&p->list, READ_BYTES) < 0)
            return p->list.err == -ENOBUFS ? -EFBIG : p->list.err;
        ssize_t n = read(fd, p->list.data + p->list.len, READ_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        p->list.len += (size_t)n;
    }
}

int preload_start_folder(struct preload *p, struct mk_str path)
{
    if (p->walk)
        folder_walk_close(p->walk);
    else
        p->walk = mk_account_alloc(NULL, sizeof(*p->walk));
    if (!p->walk)
        return -ENOMEM;
    return folder_walk_open(p->walk, p->host, p->server, path);
}

/* ── the run ── */

int preload_init(struct preload *p, struct cache *cache, const struct mk_host *host)
{
    *p = (struct preload){.base.load = load_name_of,
                          .cache = cache,
                          .host = host,
                          .server = mk_generation_file_server(mk_host_generation(host)),
                          .paths_max = PRELOAD_PATHS_MAX};
    mk_buf_init(&p->list, PRELOAD_LIST_BYTES_MAX + READ_BYTES);
    mk_buf_init(&p->errors, ERRORS_BYTES_MAX);
    return p->server ? 0 : -ENOENT;
}

void preload_release(struct preload *p)
{
    mk_buf_release(&p->list);
    mk_buf_release(&p->errors);
    if (!p->walk)
        return;
    folder_walk_close(p->walk);
    mk_account_free(NULL, p->walk, sizeof(*p->walk));
    p->walk = NULL;
}

/* Returns whether the run ends before its paths do. */
static bool is_over(struct preload *p)
{
    if (p->cancelled && *p->cancelled)
        return true;
    if (p->is_full && !p->refresh)
        return true;
    p->has_more = p->asked >= p->paths_max && (p->list_at < p->list.len || (p->walk && p->walk->depth));
    return p->asked >= p->paths_max;
}

bool preload_slice(struct preload *p, uint64_t now_ms, int64_t wall_seconds)
{
    uint64_t end_ms = mk_time_monotonic_ms() + SLICE_MS;
    p->now_ms = now_ms;
    p->wall_seconds = wall_seconds;
    while (!is_over(p)) {
        if (!load_from_list(p) && !load_from_folder(p))
            return false;
        if (mk_time_monotonic_ms() >= end_ms)
            return true;
    }
    return false;
}

void preload_write(const struct preload *p, struct mk_buf *out)
{
    mk_json_number(out, "asked", (int64_t)p->asked);
    mk_json_number(out, "kept", (int64_t)p->kept);
    mk_json_number(out, "present", (int64_t)p->present);
    mk_json_number(out, "failed", (int64_t)p->failed);
    mk_json_open(out, "errors", '[');
    if (!p->errors.err)
        mk_buf_adds(out, mk_buf_str(&p->errors));
    mk_json_close(out, ']');
    if (p->failed > PRELOAD_ERRORS_MAX)
        mk_json_number(out, "errors_omitted", (int64_t)p->failed - PRELOAD_ERRORS_MAX);
    if (p->is_full)
        mk_json_bool(out, "full", true);
    if (p->has_more)
        mk_json_bool(out, "more", true);
}
