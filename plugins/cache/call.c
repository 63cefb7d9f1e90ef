// SPDX-License-Identifier: Apache-2.0
#include "calls.h"
#include "worker.h"

#include <monkey/base/arena.h>
#include <monkey/kit/json.h>

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_cache;

/* ── life ── */

struct call *call_new_for(struct cache_worker *w, const struct mk_host *host)
{
    struct call *c = NULL;
    if (w->cache->calls++ < CALLS_MAX)
        c = mk_account_zalloc(NULL, sizeof(*c));
    if (!c) {
        w->cache->calls--;
        return NULL;
    }
    c->worker = mk_worker_get(w->worker);
    c->cache = w->cache;
    c->host = host;
    c->by = "the shell";
    mk_buf_init(&c->out, CALL_TEXT_BYTES_MAX);
    return c;
}

struct call *call_new(struct mk_request *req, struct cache_worker *w)
{
    struct call *c = call_new_for(w, mk_request_host_conf(req));
    if (!c) {
        answer_error(req, 503, "too many calls are under way; try again in a moment");
        return NULL;
    }
    c->req = req;
    c->by = "the API";
    return c;
}

void call_free(struct call *c)
{
    if (c->has_preload)
        preload_release(&c->preload);
    mk_buf_release(&c->out);
    c->cache->calls--;
    mk_worker_put(c->worker);
    mk_account_free(NULL, c, sizeof(*c));
}

/* ── the job ── */

static void run_call(struct mk_job *job)
{
    struct call *c = MK_CONTAINER_OF(job, struct call, job);
    c->result = c->cancelled ? -ECANCELED : c->work(c);
}

static void respond_call(struct call *c)
{
    *c->owner = NULL;
    if (c->result < 0) {
        int status = c->result == -ENOENT ? 404 : c->result == -EFBIG ? 413 : 503;
        answer_error(c->req, status, c->error ? c->error : strerror(-c->result));
        return;
    }
    mk_json_close_line(&c->out);
    answer_json(c->req, 200, &c->out);
}

static int submit_call(struct call *c)
{
    struct mk_loop *loop = mk_worker_loop(c->worker);
    c->now_ms = mk_loop_now_ms(loop);
    c->wall_seconds = mk_loop_wall_seconds(loop);
    return mk_job_submit(loop, &c->job);
}

static void finish_slice(struct mk_job *job)
{
    struct call *c = MK_CONTAINER_OF(job, struct call, job);
    sweep_schedule(mk_worker_state(c->worker, &mk_plugin_cache));
    bool has_more = c->result > 0;
    int err = has_more ? submit_call(c) : 0;
    if (has_more && err == 0)
        return; /* the disk thread has it again, and writes `result` */
    if (err < 0)
        c->result = err;
    if (c->req)
        respond_call(c);
    call_free(c);
}

/* The request has ended. */
static void cancel_call(void *ctx)
{
    struct call **owner = ctx;
    if (!*owner)
        return;
    (*owner)->req = NULL;
    (*owner)->cancelled = true;
}

static int own_by_request(struct call *c)
{
    struct call **owner = mk_arena_alloc(mk_request_arena(c->req), sizeof(struct call *));
    if (!owner)
        return -ENOMEM;
    *owner = NULL;
    int err = mk_arena_defer(mk_request_arena(c->req), cancel_call, owner);
    if (err < 0)
        return err;
    *owner = c;
    c->owner = owner;
    return mk_request_wait(c->req, CALL_WAIT_MS);
}

int call_start(struct call *c, call_fn work)
{
    struct mk_request *req = c->req;
    c->work = work;
    c->job = (struct mk_job){.work = run_call, .done = finish_slice};
    mk_json_open(&c->out, NULL, '{');
    int err = req ? own_by_request(c) : 0;
    if (err == 0)
        err = submit_call(c);
    if (err == 0)
        return 0;
    if (c->owner)
        *c->owner = NULL;
    call_free(c);
    if (req)
        answer_error(req, 503, "the server has no memory or thread for it now");
    return err;
}

/* ── calls ── */

int call_list_entries(struct call *c)
{
    struct places places;
    c->query.now_ms = c->now_ms;
    c->error = "no plugin of this host serves files, or there is no memory";
    int err = places_read(&places, c->host);
    if (err == 0)
        err = scan_write_entries(c->cache, &places, &c->query, &c->out);
    places_release(&places);
    return err;
}

int call_reset(struct call *c)
{
    struct places places;
    c->error = "no plugin of this host serves files, or there is no memory";
    int err = places_read(&places, c->host);
    if (err < 0)
        return err;
    uint64_t n = scan_remove(c->cache, &places, &c->target);
    places_release(&places);
    mk_json_number(&c->out, "removed", (int64_t)n);
    mk_host_log(c->host, MK_LOG_INFO, "cache: %s has removed %" PRIu64 " entries", c->by, n);
    return 0;
}

static int open_sitemap(struct call *c)
{
    struct mk_str path = mk_str_c(c->sitemap);
    int fd = mk_host_open_path(c->host, path, 0), err = fd;
    if (fd >= 0) {
        err = preload_read_list(&c->preload, fd);
        close(fd);
    }
    c->preload.is_sitemap = true;
    c->error = err == -EFBIG ? "the sitemap is larger than 16 MB" : "the sitemap cannot be read";
    return err < 0 && err != -EFBIG ? -ENOENT : err;
}

static int open_folder(struct call *c)
{
    c->error = "there is no such folder";
    return preload_start_folder(&c->preload, mk_str_c(c->folder)) < 0 ? -ENOENT : 0;
}

/* Opens what the first slice needs. */
static int open_sources(struct call *c)
{
    int err = c->sitemap[0] ? open_sitemap(c) : 0;
    if (err >= 0 && c->folder[0])
        err = open_folder(c);
    c->sitemap[0] = c->folder[0] = '\0';
    return err;
}

int call_add(struct call *c)
{
    int err = open_sources(c);
    if (err < 0)
        return err;
    if (preload_slice(&c->preload, c->now_ms, c->wall_seconds))
        return 1;
    preload_write(&c->preload, &c->out);
    mk_host_log(c->host, MK_LOG_INFO, "cache: %s has added %" PRIu64 " of %" PRIu64 " paths", c->by, c->preload.kept,
                c->preload.asked);
    return 0;
}
