// SPDX-License-Identifier: Apache-2.0
/*
 * The way of an archive:
 *
 *     open ─► respond ─► step (disk thread) ─► check (worker, some entries in each turn) ─► step ...
 *                              │ filled                                                      ▲
 *                              └───► swap ─► ready ─► generate (as the client takes it) ─────┘
 *
 * A step begins when its buffer is empty; while the client takes nothing, no thread works. The exchange may end at any
 * time: its clean-up cancels the rest. While a disk thread works, only that thread touches the walk and its buffer.
 */
#include "archive.h"
#include "listing.h"
#include "send.h"
#include "template.h"

#include <monkey/kit/open_file.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>

/*
 * A list of the archives that are made. There are few of them, so that those of a client are counted.
 */
/* static: archives of the process */
static struct {
    pthread_mutex_t lock;
    struct mk_list all;
    int64_t n;
} slots = {PTHREAD_MUTEX_INITIALIZER, {&slots.all, &slots.all}, 0};

static bool is_same_client(const struct mk_address *a, const struct mk_address *b)
{
    size_t bytes = a->family == AF_INET6 ? 8 : sizeof(a->bytes);
    return a->family == b->family && memcmp(a->bytes, b->bytes, bytes) == 0;
}

static int64_t count_slots(const struct mk_address *client)
{
    int64_t count = 0;
    MK_LIST_EACH_ITEM(&slots.all, struct archive_slot, node, slot)
        count += is_same_client(&slot->client, client);
    return count;
}

/*
 * Takes a slot for a client: an IPv6 network of 64 bits is one, and so are the clients of Unix sockets.
 * Returns 0, -EAGAIN (all archives are in use) or -EDQUOT (those of this client are).
 */
static int take_slot(struct archive_slot *slot, const struct mk_address *client, const struct listing_limits *limits)
{
    slot->client = *client;
    pthread_mutex_lock(&slots.lock);
    int err = slots.n >= limits->archives ? -EAGAIN : count_slots(client) >= limits->archives_per_client ? -EDQUOT : 0;
    if (err == 0) {
        mk_list_add(&slots.all, &slot->node);
        slots.n++;
    }
    pthread_mutex_unlock(&slots.lock);
    return err;
}

static void release_slot(struct archive_slot *slot)
{
    pthread_mutex_lock(&slots.lock);
    mk_list_del(&slot->node);
    slots.n--;
    pthread_mutex_unlock(&slots.lock);
}

enum { BUFFER_BYTES_MAX = 4 * 1024 * 1024 };

struct archive {
    struct mk_job job;
    struct archive_slot slot;
    struct mk_task check_task;
    struct mk_request *req; /* NULL: the exchange is over */
    struct mk_account *account;
    struct mk_worker *worker; /* held */
    bool working;             /* a disk thread has this struct */
    bool opened, responded;
    _Atomic bool cancelled;

    int result; /* of the last step */
    enum archive_kind kind;
    struct mk_str kind_name;
    const struct listing_host *host;
    const struct listing_rule *rule;
    struct walk walk;
    struct mk_buf buffers[2];
    struct mk_buf *filling, *ready; /* one of the two each */
    size_t ready_at;                /* the client has the bytes of `ready` before it */
    size_t size;                    /* of this struct */
    struct mk_str path;
    char storage[];
};

static void free_archive(struct archive *a)
{
    assert(!a->working && !a->req);
    mk_task_cancel(&a->check_task);
    walk_close(&a->walk);
    mk_buf_release(&a->buffers[0]);
    mk_buf_release(&a->buffers[1]);
    release_slot(&a->slot);
    mk_worker_put(a->worker);
    mk_account_free(a->account, a, a->size);
}

/* The exchange has ended. */
static void end_archive(void *ctx)
{
    struct archive *a = ctx;
    a->req = NULL;
    a->cancelled = true;
    if (!a->working)
        free_archive(a);
}

/* ── steps ── */

static void make_step(struct mk_job *job)
{
    struct archive *a = MK_CONTAINER_OF(job, struct archive, job);
    if (a->opened) {
        a->result = walk_step(&a->walk);
        return;
    }
    a->opened = true;
    a->result = walk_open(&a->walk, a->host->host, a->rule, a->path, &a->cancelled);
    if (a->result == 0)
        a->result = walk_start_archive(&a->walk, a->kind, a->filling);
}

static void finish_step(struct mk_job *job);

/* From the submission on the struct is the disk thread's. */
static int start_step(struct archive *a)
{
    a->job.work = make_step;
    a->job.done = finish_step;
    a->working = true;
    int err = mk_job_submit(mk_request_loop(a->req), &a->job);
    a->working = err == 0;
    return err;
}

/* Between two steps: passes what is filled on to the client, and starts the next step. Returns 0 or -errno. */
static int go_on(struct archive *a)
{
    assert(!a->working && a->result != WALK_CHECK);
    if (a->ready_at == a->ready->len && a->filling->len) {
        struct mk_buf *filled = a->filling;
        a->filling = a->ready;
        a->ready = filled;
        a->ready_at = 0;
        mk_buf_drop(a->filling, a->filling->len);
        walk_set_output(&a->walk, a->filling);
    }
    return a->result == WALK_END || a->filling->len ? 0 : start_step(a);
}

/* ── responses ── */

static void abort_response(struct archive *a)
{
    mk_request_log(a->req, MK_LOG_WARN, "dirlisting: the archive of %s was cut: %s", a->path.p, walk_error(a->result));
    listing_counters_add(LISTING_COUNT_ARCHIVES_TRUNCATED, a->req, 1);
    mk_response_abort(a->req);
}

/* Returns the name of the folder; that of the root is empty. */
static struct mk_str get_name(struct mk_str path)
{
    size_t n = path.len - 1, start = n; /* without the last slash */
    while (start && path.p[start - 1] != '/')
        start--;
    return mk_str(path.p + start, n - start);
}

static int add_disposition(struct archive *a)
{
    struct mk_buf value;
    mk_buf_init(&value, 4096);
    disposition_write(&value, get_name(a->path), a->kind_name);
    int err = value.err ? value.err : mk_response_header(a->req, MK_STR("Content-Disposition"), mk_buf_str(&value));
    mk_buf_release(&value);
    return err;
}

static const struct mk_str media_types[ARCHIVE_KINDS] = {
    [ARCHIVE_TAR] = MK_STR("application/x-tar"),
    [ARCHIVE_TAR_GZ] = MK_STR("application/gzip"),
    [ARCHIVE_TAR_ZST] = MK_STR("application/zstd"),
};

static ssize_t generate_bytes(struct mk_request *req, char *to, size_t size, void *ctx);

static void respond_archive(struct archive *a)
{
    struct mk_request *req = a->req;
    a->responded = true;
    if (conditions_fail(req)) {
        mk_response_error(req, 412);
        return;
    }
    int err = mk_response_header_ref(req, MK_STR("Content-Type"), media_types[a->kind]);
    if (err == 0)
        err = add_disposition(a);
    if (err == 0)
        err = mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-cache"));
    if (err == 0)
        err = mk_response_generate(req, generate_bytes, a);
    if (err < 0) {
        mk_response_error(req, 503);
        return;
    }
    listing_counters_add(LISTING_COUNT_ARCHIVES, req, 1);
    mk_response_end(req);
}

static ssize_t generate_bytes(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct archive *a = ctx;
    (void)req;
    assert(a->req == req);
    bool idle = !a->working && a->result != WALK_CHECK;
    if (idle && a->result < 0)
        return a->result;
    int err = a->ready_at == a->ready->len && idle ? go_on(a) : 0;
    size_t left = a->ready->len - a->ready_at, n = left < size ? left : size;
    if (err < 0)
        return err;
    if (n == 0)
        return !a->working && a->result == WALK_END ? 0 : -EAGAIN;
    memcpy(to, a->ready->data + a->ready_at, n);
    a->ready_at += n;
    listing_counters_add(LISTING_COUNT_ARCHIVE_BYTES, req, n);
    return (ssize_t)n;
}

/* ── between the threads ── */

static void check_entries(struct mk_task *task)
{
    struct archive *a = MK_CONTAINER_OF(task, struct archive, check_task);
    assert(a->req && !a->working && a->result == WALK_CHECK);
    if (walk_check(&a->walk, a->req)) {
        mk_task_schedule(mk_request_loop(a->req), task);
        return;
    }
    a->result = WALK_OUTPUT;
    int err = start_step(a);
    if (err < 0) {
        a->result = err;
        abort_response(a);
    }
}

/* In the worker's thread again. */
static void finish_step(struct mk_job *job)
{
    struct archive *a = MK_CONTAINER_OF(job, struct archive, job);
    a->working = false;
    if (!a->req)
        free_archive(a);
    else if (!a->responded && a->result < 0)
        mk_response_error(a->req, mk_open_file_get_status(a->result)); /* of the folder */
    else if (a->result < 0)
        abort_response(a);
    else if (!a->responded)
        respond_archive(a);
    else if (a->result == WALK_CHECK)
        check_entries(&a->check_task);
    else
        mk_response_wake(a->req); /* the generator continues */
}

/* ── requests ── */

/* `err`: of take_slot() */
static void send_busy(struct mk_request *req, int err)
{
    bool own = err == -EDQUOT;
    listing_counters_add(own ? LISTING_COUNT_ARCHIVES_OWN : LISTING_COUNT_ARCHIVES_BUSY, req, 1);
    mk_response_set_status(req, own ? 429 : 503);
    mk_response_header_ref(req, MK_STR("Retry-After"), MK_STR("10"));
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8"));
    mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-store"));
    mk_response_write_ref(req, own ? MK_STR("Too many archives are being sent to your network. Try again later.\n")
                                   : MK_STR("Too many archives are being made. Try again later.\n"));
    mk_response_end(req);
}

/* Makes the state of the response, which is freed when the exchange ends. Returns 0 or -errno. */
static int make_archive(struct mk_request *req, const struct listing_limits *limits, struct archive **ret)
{
    struct mk_str path = mk_request_path(req);
    struct mk_address client = mk_request_client(req);
    size_t size = sizeof(struct archive) + path.len + 1;
    struct archive *a = mk_account_alloc(mk_request_account(req), size);
    if (!a)
        return -ENOMEM;
    *a = (struct archive){.req = req, .account = mk_request_account(req), .size = size, .walk.fd = -1};
    int err = take_slot(&a->slot, &client, limits);
    if (err == 0 && mk_arena_defer(mk_request_arena(req), end_archive, a) < 0) {
        release_slot(&a->slot);
        err = -ENOMEM;
    }
    if (err < 0) {
        mk_account_free(a->account, a, size);
        return err;
    }
    a->filling = &a->buffers[0];
    a->ready = &a->buffers[1];
    mk_buf_init(a->filling, BUFFER_BYTES_MAX);
    mk_buf_init(a->ready, BUFFER_BYTES_MAX);
    mk_task_init(&a->check_task, check_entries);
    memcpy(a->storage, path.p, path.len + 1);
    a->path = mk_str(a->storage, path.len);
    a->worker = mk_worker_get(mk_request_worker(req));
    *ret = a;
    return 0;
}

int archive_send(struct mk_request *req, const struct listing_host *host, const struct listing_rule *rule,
                 struct mk_str kind_name)
{
    enum archive_kind kind = rules_archive_kind(kind_name);
    struct archive *a;
    if (!rule->archives[kind]) {
        mk_response_error(req, 404);
        return 0;
    }
    int err = make_archive(req, rules_limits(host->host), &a);
    if (err == -EAGAIN || err == -EDQUOT) {
        send_busy(req, err);
        return 0;
    }
    if (err < 0)
        return err;
    a->kind = kind;
    a->kind_name = rules_archive_name(kind);
    a->host = host;
    a->rule = rule;
    return start_step(a);
}
