// SPDX-License-Identifier: Apache-2.0
/*
 * Finds scripts. The kernel keeps them below the document root, by the rules of the plugin that serves
 * files; no code here compares paths to decide what may be run.
 */
#include "fastcgi.h"

#include <monkey/base/siphash.h>
#include <monkey/kit/request_job.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── scripts ── */

/* What is looked for, and where. */
struct search {
    const struct fastcgi_conf *conf;
    const struct mk_host *host;
    struct mk_str path;
    struct resolution *to;
};

static bool has_slash(struct mk_str path)
{
    return path.p[path.len - 1] == '/';
}

static bool is_missing(int err)
{
    return err == -ENOENT || err == -ENOTDIR || err == -EISDIR || err == -ELOOP || err == -EXDEV ||
           err == -ENAMETOOLONG;
}

static void set_status(struct search *s, int err)
{
    s->to->kind = RESOLVE_STATUS;
    s->to->status = err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EAGAIN ? 503
                    : err == -EACCES || err == -EPERM                                    ? 403
                                                                                         : 404;
}

/* Writes two texts, one after the other, as the path that the result points into. Returns 0 or -ENAMETOOLONG. */
static int set_path(struct search *s, struct mk_str first, struct mk_str second)
{
    char *to = s->to->path;
    if (first.len + second.len >= sizeof(s->to->path))
        return -ENAMETOOLONG;
    memcpy(to, first.p, first.len);
    memcpy(to + first.len, second.p, second.len);
    to[first.len + second.len] = '\0';
    return 0;
}

/* Finds the script of a remote server, which checks that it exists. Returns 0 or -ENAMETOOLONG. */
static int find_remote(struct search *s, struct mk_str name)
{
    struct mk_cgi_script *script = &s->to->script;
    struct mk_str root = s->conf->remote_root;
    if (root.len + name.len >= sizeof(script->file))
        return -ENAMETOOLONG;
    *script = (struct mk_cgi_script){.name = name};
    memcpy(script->root, root.p, root.len);
    memcpy(script->file, root.p, root.len);
    memcpy(script->file + root.len, name.p, name.len);
    return 0;
}

/* Finds the script in the path that was set. Returns 0, -ENOENT (Split finds none) or another -errno. */
static int find_script(struct search *s)
{
    const struct mk_cgi_place place = {.host = s->host, .root = MK_STR_NONE};
    struct mk_str name, info;
    if (!mk_cgi_split(mk_str_c(s->to->path), &s->conf->split, &name, &info))
        return -ENOENT;
    int err = s->conf->remote_root.len ? find_remote(s, name)
                                       : mk_cgi_find_script(&place, MK_CGI_FIND_EXACT, name, &s->to->script);
    s->to->script.info = info;
    if (err == 0)
        s->to->kind = RESOLVE_RUN;
    return err;
}

/* Tries a script. Returns true if that is the result. */
static bool try_script(struct search *s, struct mk_str first, struct mk_str second)
{
    int err = set_path(s, first, second);
    if (err == 0)
        err = find_script(s);
    if (err < 0 && !is_missing(err))
        set_status(s, err);
    return err == 0 || !is_missing(err);
}

static bool is_script(const struct search *s, struct mk_str path)
{
    struct mk_str name, info;
    return mk_cgi_split(path, &s->conf->split, &name, &info);
}

static bool try_index(struct search *s)
{
    return s->conf->index.len && has_slash(s->path) && try_script(s, s->path, s->conf->index);
}

/* Tells whether a file or a folder is there, by the rules of the plugin that serves files. */
static bool has_file(const struct search *s, struct mk_str path, uint32_t flags)
{
    int fd = mk_host_open_path(s->host, path, flags);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* ── entries of TryFiles ── */

static bool try_file(struct search *s, const struct fastcgi_try *try)
{
    (void)try;
    if (is_script(s, s->path))
        return try_script(s, s->path, MK_STR(""));
    return !has_slash(s->path) && has_file(s, s->path, 0);
}

static bool try_folder(struct search *s, const struct fastcgi_try *try)
{
    (void)try;
    if (try_index(s))
        return true;
    if (set_path(s, s->path, has_slash(s->path) ? MK_STR("") : MK_STR("/")) < 0)
        return false;
    return has_file(s, mk_str_c(s->to->path), MK_OPEN_FOLDER);
}

/* The script of a folder is run by the path with a slash, so that its relative links lead into the folder. */
static bool try_name(struct search *s, const struct fastcgi_try *try)
{
    struct mk_str path = try->has_path ? s->path : MK_STR("");
    bool is_in_folder = try->has_path && try->text.p[0] == '/';
    bool is_remote = try->has_path && s->conf->remote_root.len; /* not known: the next entry */
    path.len -= is_in_folder && has_slash(path);
    if (is_remote || !try_script(s, path, try->text))
        return false;
    if (s->to->kind == RESOLVE_RUN && is_in_folder && !has_slash(s->path))
        s->to->kind = RESOLVE_REDIRECT;
    return true;
}

static bool try_status(struct search *s, const struct fastcgi_try *try)
{
    s->to->kind = RESOLVE_STATUS;
    s->to->status = try->status;
    return true;
}

static void try_entries(struct search *s)
{
    static bool (*const functions[])(struct search * s, const struct fastcgi_try *try) = {
        [FASTCGI_TRY_FILE] = try_file,
        [FASTCGI_TRY_FOLDER] = try_folder,
        [FASTCGI_TRY_SCRIPT] = try_name,
        [FASTCGI_TRY_STATUS] = try_status,
    };
    const struct fastcgi_tries *tries = &s->conf->tries;
    for (uint32_t i = 0; i < tries->n; i++)
        if (functions[tries->items[i].kind](s, &tries->items[i]))
            return;
    if (is_script(s, s->path) || tries->items[tries->n - 1].kind == FASTCGI_TRY_SCRIPT)
        set_status(s, -ENOENT);
}

void resolve_path(const struct fastcgi_conf *conf, const struct mk_host *host, struct mk_str path,
                  struct resolution *ret)
{
    struct search s = {.conf = conf, .host = host, .path = path, .to = ret};
    ret->kind = RESOLVE_DECLINE;
    if (path.len >= MK_CGI_PATH_BYTES)
        set_status(&s, -ENAMETOOLONG);
    else if (conf->tries.n)
        try_entries(&s);
    else if (is_script(&s, path) && !try_script(&s, path, MK_STR("")))
        set_status(&s, -ENOENT);
    else if (!is_script(&s, path))
        try_index(&s);
}

void resolve_explain(const struct resolution *found, struct mk_buf *out)
{
    if (found->kind == RESOLVE_RUN)
        mk_buf_addf(out, "the script %s is run as %.*s, with the PATH_INFO \"%.*s\"", found->script.file,
                    MK_STR_ARG(found->script.name), MK_STR_ARG(found->script.info));
    else if (found->kind == RESOLVE_REDIRECT)
        mk_buf_addf(out, "a redirect to the path with a slash, for the script of the folder");
    else if (found->kind == RESOLVE_STATUS)
        mk_buf_addf(out, "%d: there is no script for the path", found->status);
}

/* ── on a disk thread ── */

struct lookup {
    struct mk_request_job base; /* with the path */
    const struct fastcgi_conf *conf;
    const struct mk_host *host;
    lookup_fn fn;
    struct resolution found;
};

static void run_lookup(struct mk_request_job *job)
{
    struct lookup *l = (struct lookup *)job;
    resolve_path(l->conf, l->host, job->text, &l->found);
}

static void end_lookup(struct mk_request_job *job, struct mk_request *req)
{
    struct lookup *l = (struct lookup *)job;
    if (req)
        l->fn(req, l->conf, &l->found);
}

int lookup_start(struct mk_request *req, const struct fastcgi_conf *conf, lookup_fn fn)
{
    static const struct mk_request_job_type type = {sizeof(struct lookup), run_lookup, end_lookup};
    struct lookup *l = mk_request_job_new(req, &type, mk_request_path(req));
    if (!l)
        return -ENOMEM;
    l->conf = conf;
    l->host = mk_request_host_conf(req);
    l->fn = fn;
    return mk_request_job_start(&l->base);
}

/* ── scripts that were found in the last second: a slot for each hash ── */

/* A path that a client chooses for the slot of another one costs that a search, so the hash needs no key. */
static size_t get_slot(struct mk_str path)
{
    static const uint64_t key[2];
    return mk_siphash(key, path.p, path.len) % RECENT_SLOTS;
}

const struct fastcgi_script *recent_find(const struct recent *r, const struct fastcgi_conf *conf, struct mk_str path,
                                         uint64_t now_ms)
{
    const struct recent_script *slot = &r->slots[get_slot(path)];
    bool is_hit = slot->conf == conf && now_ms < slot->end_ms && mk_str_eq(slot->path, path);
    return is_hit ? &slot->script : NULL;
}

static void clear_slot(struct recent_script *slot)
{
    if (slot->conf)
        mk_account_free(NULL, (char *)(uintptr_t)slot->path.p, slot->bytes);
    *slot = (struct recent_script){0};
}

static struct mk_str copy_text(char **to, struct mk_str text)
{
    struct mk_str copy = mk_str(*to, text.len);
    if (text.len)
        memcpy(*to, text.p, text.len);
    *to += text.len;
    return copy;
}

void recent_add(struct recent *r, const struct fastcgi_conf *conf, struct mk_str path,
                const struct fastcgi_script *script, uint64_t now_ms)
{
    struct recent_script *slot = &r->slots[get_slot(path)];
    size_t bytes = path.len + script->name.len + script->info.len + script->filename.len + script->root.len;
    clear_slot(slot);
    char *to = mk_account_alloc(NULL, bytes);
    if (!to)
        return;
    *slot = (struct recent_script){.conf = conf, .end_ms = now_ms + RECENT_MS, .bytes = bytes};
    slot->path = copy_text(&to, path);
    slot->script.name = copy_text(&to, script->name);
    slot->script.info = copy_text(&to, script->info);
    slot->script.filename = copy_text(&to, script->filename);
    slot->script.root = copy_text(&to, script->root);
}

void recent_release(struct recent *r)
{
    for (size_t i = 0; i < RECENT_SLOTS; i++)
        clear_slot(&r->slots[i]);
}
