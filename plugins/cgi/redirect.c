// SPDX-License-Identifier: Apache-2.0
/*
 * Local redirects (RFC 3875 section 6.2.2): a script answers with a path of this server, which then sends the response
 * for that path: of another script, or a file. Rules and logins decide about that path as for a request of the client.
 */
#include "cgi.h"

#include <monkey/base/escape.h>
#include <monkey/file_cache.h>
#include <monkey/kit/open_file.h>
#include <monkey/kit/request_job.h>

#include <errno.h>
#include <unistd.h>

enum { REDIRECTS_MAX = 5 };

/* ── the path ── */

/* Decodes escapes into the arena, with a NUL after. Returns false if there is a NUL, an escape that is none, or no
 * memory. */
static bool decode_path(struct mk_arena *arena, struct mk_str raw, struct mk_str *ret)
{
    char *to = mk_arena_alloc(arena, raw.len + 1);
    struct mk_buf path;
    if (!to)
        return false;
    mk_buf_init_fixed(&path, to, raw.len + 1);
    bool is_whole = mk_path_decode(&path, raw);
    *ret = mk_str(mk_buf_cstr(&path), path.len);
    return is_whole && !memchr(ret->p, '\0', ret->len);
}

/* Tells whether a path is as those of requests are: no empty segment, "." or "..". */
static bool is_normal(struct mk_str path)
{
    path = mk_str_after(path, path.len > 0);
    while (path.len) {
        struct mk_str segment = mk_str_split(&path, '/');
        if (!segment.len || mk_str_is_dots(segment))
            return false;
    }
    return true;
}

/*
 * Decodes a path with encoded slashes as that of a request: they stay where the section that has the path keeps them,
 * and are as others where it decodes them. Returns false if it refuses them.
 */
static bool decode_encoded_slashes(struct run *r, struct mk_str raw, struct mk_str *ret)
{
    struct mk_arena *arena = mk_request_arena(r->req);
    const struct section *section;
    char *kept = mk_arena_alloc(arena, raw.len * 2);
    size_t n = 0;
    for (size_t i = 0; kept && i < raw.len; i++) {
        bool is_slash = mk_str_istarts(mk_str_after(raw, i), MK_STR("%2F"));
        size_t len = is_slash ? 5 : 1;
        memcpy(kept + n, is_slash ? "%252F" : raw.p + i, len);
        n += len;
        i += is_slash ? 2 : 0;
    }
    if (!kept || !decode_path(arena, mk_str(kept, n), ret) ||
        run_find_section(mk_request_host_conf(r->req), *ret, &section) < 0 || !section)
        return false;
    return section->conf->encoded_slash == MK_ENCODED_SLASH_KEEP ||
           (section->conf->encoded_slash == MK_ENCODED_SLASH_DECODE && decode_path(arena, raw, ret));
}

static bool has_encoded_slash(struct mk_str path)
{
    size_t i = 0;
    while (i < path.len && !mk_str_istarts(mk_str_after(path, i), MK_STR("%2F")))
        i++;
    return i < path.len;
}

/* Splits the target into a decoded path and the query. Returns false if it is not a path of this server. */
static bool take_target(struct run *r, struct mk_str target)
{
    struct mk_arena *arena = mk_request_arena(r->req);
    struct mk_cgi_params *p = &r->params;
    target = mk_str_until(target, "#");
    struct mk_str path = mk_str_until(target, "?");
    p->uri = mk_arena_dup(arena, target);
    if (!(has_encoded_slash(path) ? decode_encoded_slashes(r, path, &r->path) : decode_path(arena, path, &r->path)))
        return false;
    if (!p->uri.p || !is_normal(r->path))
        return false;
    p->is_redirected = true;
    p->query = mk_str_after(p->uri, path.len + (path.len < target.len));
    return true;
}

/* ── files ── */

static void follow_redirect(struct run *r);

/* A file that is opened on a disk thread, or the index of a folder that is found there. */
struct open_job {
    struct mk_request_job base; /* with the path */
    struct run *run;            /* valid as long as the request */
    const struct mk_host *host;
    struct mk_str path; /* the request's */
    int fd;
    struct mk_buf index; /* its path; empty: there is none */
};

static void open_file(struct mk_request_job *job)
{
    struct open_job *j = (struct open_job *)job;
    const struct mk_file_server *files = mk_generation_file_server(mk_host_generation(j->host));
    bool is_folder = mk_str_ends(job->text, MK_STR("/"));
    int err = is_folder && files ? files->find_index(j->host, job->text, &j->index) : 0;
    if (mk_str_eq(mk_buf_str(&j->index), job->text)) /* an alias for this path alone */
        j->index.len = 0;
    if (err < 0 || !j->index.len)
        j->fd = err < 0 ? err : mk_host_open_path(j->host, job->text, 0);
}

static void respond_file(struct mk_request *req, struct mk_str path, int fd)
{
    struct mk_file file;
    if (fd < 0 || mk_open_file_describe(fd, &file) < 0) {
        if (fd >= 0)
            close(fd);
        mk_response_error(req, fd == -EACCES ? 403 : 404);
        return;
    }
    file.type = mk_request_mime(req, path);
    mk_response_file(req, &file);
}

/* The path of the index is followed as that of the redirect was: it may be a script, and has its own rules. */
static void follow_index(struct run *r, struct mk_str index)
{
    r->path = mk_arena_dup(mk_request_arena(r->req), index);
    if (r->path.p)
        follow_redirect(r);
    else
        run_fail(r, 503);
}

static void end_job(struct mk_request_job *job, struct mk_request *req)
{
    struct open_job *j = (struct open_job *)job;
    bool is_awaited = req && !j->run->is_complete; /* else the script was late meanwhile */
    if (is_awaited && j->index.len) {
        follow_index(j->run, mk_buf_str(&j->index));
    } else if (is_awaited) {
        j->run->is_complete = true; /* what the script still writes is dropped */
        respond_file(req, j->path, j->fd);
    } else if (j->fd >= 0) {
        close(j->fd);
    }
    mk_buf_release(&j->index);
}

/* Responds with the file of the path. Returns 0, -ENOMEM or -EAGAIN. */
static int send_file(struct run *r)
{
    static const struct mk_request_job_type type = {sizeof(struct open_job), open_file, end_job};
    struct open_job *j = mk_request_job_new(r->req, &type, r->path);
    if (!j)
        return -ENOMEM;
    j->run = r;
    j->host = mk_request_host_conf(r->req);
    j->path = r->path;
    j->fd = -1;
    mk_buf_init(&j->index, MK_CGI_PATH_BYTES);
    return mk_request_job_start(&j->base);
}

/* ── following ── */

static void refuse_redirect(struct run *r, int status, const char *sentence)
{
    mk_request_log(r->req, MK_LOG_ERROR, "%s: its redirect to a path of this server is not followed: %s", r->prefix,
                   sentence);
    run_fail(r, status);
}

/* The request cannot become another one (docs/internals/child.md). */
static void refuse_responder(struct run *r, const char *plugin)
{
    mk_request_log(
        r->req, MK_LOG_ERROR,
        "%s: its redirect to a path of this server is not followed: the plugin %s responds to %.*s, and only "
        "to requests of clients: write LocalRedirect Off for such redirects",
        r->prefix, plugin, MK_STR_ARG(r->path));
    run_fail(r, 502);
}

/* Continues with the script of another section; this one has ended. */
void run_redirect_continue(struct run *r)
{
    const struct section *section = r->next;
    struct process *process = r->thread->process;
    r->next = NULL;
    run_output_release(r);
    run_input_release(r);
    slots_get(&process->slots, section->slots);
    slots_put(&process->slots, r->slots);
    r->slots = section->slots;
    r->conf = section->conf;
    r->is_stopped = false;
    run_find(r);
}

int run_find_section(const struct mk_host *host, struct mk_str path, const struct section **ret)
{
    const struct host *own = mk_host_state(host, &mk_plugin_cgi);
    const void *conf = NULL;
    int err = own ? mk_host_conf_match(host, cgi_sections, offsetof(struct cgi_conf, match), path, &conf) : 0;
    const struct section *s = conf ? own->first : NULL;
    while (s && s->conf != conf)
        s = s->next;
    *ret = s && !mk_host_prefers_files(host, &s->conf->match, path) ? s : NULL;
    return err;
}

/* Says why the path of a redirect is not answered. `section`: that of the path; NULL: none. */
static void refuse_path(struct run *r, const struct section *section)
{
    const struct mk_plugin *responder = mk_request_find_responder(r->req, r->path);
    if (responder)
        refuse_responder(r, responder->name);
    else if (!section && mk_host_is_source(mk_request_host_conf(r->req), MK_SOURCE_PATH, r->path))
        refuse_redirect(r, 502,
                        "another plugin runs a program for that path: write LocalRedirect Off for such redirects");
    else
        refuse_redirect(r, 403, "the client may not have that path");
}

static void follow_redirect(struct run *r)
{
    const struct section *section;
    int err = run_find_section(mk_request_host_conf(r->req), r->path, &section);
    int allowed = err < 0   ? err
                  : section ? mk_request_allows_source(r->req, &mk_plugin_cgi, r->path)
                            : mk_request_allows_path(r->req, r->path);
    if (allowed <= 0) {
        refuse_path(r, section);
        return;
    }
    r->phase = OVER;
    r->next = section;
    if (section && !r->has_child)
        run_redirect_continue(r);
    else if (!section && send_file(r) < 0)
        run_fail(r, 503);
}

bool run_redirect_allows(struct run *r, struct mk_str name)
{
    struct mk_str path = mk_arena_dup(mk_request_arena(r->req), name);
    bool allowed = path.p && mk_request_allows_source(r->req, &mk_plugin_cgi, path) > 0;
    if (!allowed)
        refuse_redirect(r, 403, "the client may not have its script");
    return allowed;
}

void run_redirect(struct run *r, struct mk_str target)
{
    if (++r->redirects > REDIRECTS_MAX)
        refuse_redirect(r, 502, "there were five before");
    else if (!take_target(r, target))
        refuse_redirect(r, 502, "it is not a normalized path");
    else
        follow_redirect(r);
}
