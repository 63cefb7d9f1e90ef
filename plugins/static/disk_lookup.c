// SPDX-License-Identifier: Apache-2.0
/*
 * Runs lookups on disk threads. The request may end meanwhile, and so may those that wait with it.
 */
#include "static.h"

#include <monkey/base/arena.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { READ_AHEAD_BYTES_MAX = 64 * 1024 };

struct disk_lookup {
    struct mk_job job;
    struct disk_lookup **owner; /* in the request's arena: points to this struct while the lookup runs */
    struct mk_request *req;     /* NULL: it has ended */
    const struct disk_lookup_functions *functions;
    struct mk_account *account;
    struct mk_worker *worker;  /* held: the site is its generation's */
    struct static_location at; /* its strings are in `storage` */
    struct mk_str req_path;    /* the path of it that stays as long as the request */
    uint64_t root_check_ms;    /* when mk__static_root_begin_check() returned true; 0: it did not */
    struct mk_accept accept;
    struct find_result found;
    struct mk_list node;    /* in the worker's lookups */
    struct mk_list waiters; /* requests for the same path */
    size_t bytes;
    char storage[];
};

/* A request that waits for the lookup of another one; in its arena. */
struct waiter {
    struct mk_list node;
    struct mk_request *req;
    struct static_location at;
};

/* ── waiting with another request ── */

static void stop_waiting(void *ctx)
{
    struct waiter *w = ctx;
    mk_list_del(&w->node);
}

static struct disk_lookup *find_running(const struct disk_lookups *all, const struct static_location *at)
{
    MK_LIST_EACH_ITEM(&all->running, struct disk_lookup, node, l) {
        if (l->at.site == at->site && mk_str_eq(l->at.path, at->path))
            return l;
    }
    return NULL;
}

/* Adds the request to those that wait for `l`. Returns 0 or -ENOMEM. */
static int wait_for(struct disk_lookup *l, struct mk_request *req, const struct static_location *at)
{
    struct waiter *w = mk_arena_alloc(mk_request_arena(req), sizeof(*w));
    if (!w)
        return -ENOMEM;
    *w = (struct waiter){.req = req, .at = *at};
    mk_list_init(&w->node);
    int err = mk_arena_defer(mk_request_arena(req), stop_waiting, w);
    if (err == 0)
        mk_list_add(&l->waiters, &w->node);
    return err;
}

/* Serves the waiting requests again: most often the kernel has in memory now what they need. */
static void serve_waiters(struct mk_list *waiters, const struct disk_lookup_functions *functions)
{
    while (!mk_list_empty(waiters)) {
        struct waiter *w = MK_LIST_FIRST(waiters, struct waiter, node);
        mk_list_del(&w->node);
        if (functions->serve_again(w->req, &w->at) == MK_DECLINED)
            mk_request_decline(w->req);
    }
}

/* ── the job ── */

/* Has the kernel read a small file: then neither the response nor requests that wait need a disk thread to read it. */
static void read_ahead(const struct find_result *f)
{
    char last;
    if (f->kind != FOUND_FILE || f->bytes == 0 || f->bytes > READ_AHEAD_BYTES_MAX)
        return;
    (void)!posix_fadvise(f->fd, 0, (off_t)f->bytes, POSIX_FADV_WILLNEED);
    (void)!pread(f->fd, &last, 1, (off_t)f->bytes - 1); /* an error shows itself again when the response reads */
}

/* Finds in the folder of a user. EISDIR: a folder there has no index, which the worker cannot see without waiting. */
static void find_of_user(struct disk_lookup *l)
{
    struct mk_str path = l->at.path;
    l->found = mk__static_userdir_find(&l->at, &(struct find_mode){.accept = &l->accept});
    if (l->found.kind != FOUND_NOTHING || l->found.err != ENOENT || !mk_str_ends(path, MK_STR("/")))
        return;
    struct find_result folder = mk__static_userdir_find_folder(&l->at);
    if (folder.kind != FOUND_DIRECTORY)
        return;
    close(folder.fd);
    l->found.err = EISDIR;
}

static void run_lookup(struct mk_job *job)
{
    struct disk_lookup *l = MK_CONTAINER_OF(job, struct disk_lookup, job);
    assert(l->at.path.p == l->storage); /* a copy: the request may end meanwhile */
    if (l->root_check_ms)
        mk__static_root_check(l->at.site, l->root_check_ms);
    else if (l->at.site->root_fd >= 0 && mk__static_root_has_changed(l->at.site))
        mk__static_root_update(l->at.site); /* the cache may be waiting for that */
    if (userdir_is_matched(&l->at))
        find_of_user(l);
    else
        l->found = find_path(l->at.site, l->at.path, &l->accept, false);
    read_ahead(&l->found);
}

static void respond_lookup(struct disk_lookup *l)
{
    assert(*l->owner == l);
    *l->owner = NULL;
    if (l->found.name.p == l->at.path.p)
        l->found.name = l->req_path;
    l->functions->respond(l->req, l->at.site, &l->found);
}

/* In the worker's thread again: responds, unless the request has ended. */
static void finish_lookup(struct mk_job *job)
{
    struct disk_lookup *l = MK_CONTAINER_OF(job, struct disk_lookup, job);
    mk_list_del(&l->node);
    if (l->req)
        respond_lookup(l);
    else
        mk__static_open_release(&l->found);
    serve_waiters(&l->waiters, l->functions);
    mk_worker_put(l->worker);
    mk_account_free(l->account, l, l->bytes);
}

/* The request has ended. */
static void cancel_lookup(void *ctx)
{
    struct disk_lookup **owner = ctx;
    assert(!*owner || (*owner)->owner == owner);
    if (*owner)
        (*owner)->req = NULL;
}

/* ── starting ── */

/* Copies `s` with a NUL after it. */
static struct mk_str copy_str(char *to, struct mk_str s)
{
    memcpy(to, s.p, s.len);
    to[s.len] = '\0';
    return mk_str(to, s.len);
}

static struct disk_lookup *make_lookup(struct mk_request *req, const struct static_location *at)
{
    size_t bytes = sizeof(struct disk_lookup) + at->path.len + 1 + (userdir_is_matched(at) ? at->user.len + 1 : 0);
    struct disk_lookup **owner = mk_arena_alloc(mk_request_arena(req), sizeof(struct disk_lookup *));
    struct disk_lookup *l = owner ? mk_account_alloc(mk_request_account(req), bytes) : NULL;
    if (!l)
        return NULL;
    *l = (struct disk_lookup){.job = {.work = run_lookup, .done = finish_lookup},
                              .owner = owner,
                              .req = req,
                              .account = mk_request_account(req),
                              .worker = mk_worker_get(mk_request_worker(req)),
                              .at = {.site = at->site},
                              .req_path = at->path,
                              .bytes = bytes};
    l->at.path = copy_str(l->storage, at->path);
    if (userdir_is_matched(at))
        l->at.user = copy_str(l->storage + at->path.len + 1, at->user);
    mk_list_init(&l->node);
    mk_list_init(&l->waiters);
    *owner = l;
    return l;
}

int mk__static_disk_lookup_start(struct disk_lookups *all, struct mk_request *req, const struct static_location *at,
                                 const struct mk_accept *accept, uint64_t root_check_ms,
                                 const struct disk_lookup_functions *functions)
{
    assert(at->path.len > 0);
    bool is_shared = all && !userdir_is_matched(at) && !root_check_ms;
    struct disk_lookup *running = is_shared ? find_running(all, at) : NULL;
    if (running)
        return wait_for(running, req, at);
    struct disk_lookup *l = make_lookup(req, at);
    if (!l)
        return -ENOMEM;
    l->functions = functions;
    l->accept = *accept;
    l->root_check_ms = root_check_ms;
    int err = mk_arena_defer(mk_request_arena(req), cancel_lookup, l->owner);
    if (err == 0)
        err = mk_job_submit(mk_request_loop(req), &l->job);
    if (err < 0) {
        *l->owner = NULL;
        mk_worker_put(l->worker);
        mk_account_free(l->account, l, l->bytes);
        return err;
    }
    if (is_shared)
        mk_list_add(&all->running, &l->node);
    mk__static_file_counters_add_disk_lookup(req);
    return 0;
}

/* ── requests that are served again a moment later ── */

enum { RETRY_MS = 1 };

/* In the request's arena. */
struct retry {
    struct mk_timer timer;
    struct mk_request *req;
    struct static_location at;
    int (*serve)(struct mk_request *req, const struct static_location *at);
};

static void on_timer(struct mk_timer *timer)
{
    struct retry *r = MK_CONTAINER_OF(timer, struct retry, timer);
    if (r->serve(r->req, &r->at) == MK_DECLINED)
        mk_request_decline(r->req);
}

static void cancel_retry(void *ctx)
{
    struct retry *r = ctx;
    mk_timer_cancel(&r->timer);
}

int mk__static_retry_arm(struct mk_request *req, const struct static_location *at,
                         int (*serve)(struct mk_request *req, const struct static_location *at))
{
    struct retry *r = mk_arena_alloc(mk_request_arena(req), sizeof(*r));
    if (!r)
        return -ENOMEM;
    *r = (struct retry){.req = req, .at = *at, .serve = serve};
    mk_timer_init(&r->timer, on_timer);
    int err = mk_arena_defer(mk_request_arena(req), cancel_retry, r);
    if (err == 0)
        mk_timer_arm(mk_request_loop(req), &r->timer, RETRY_MS);
    return err;
}
