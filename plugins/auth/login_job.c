// SPDX-License-Identifier: Apache-2.0
/*
 * Hashes that are computed for requests.
 *
 *     worker: job_start() ─► pool ─► compute_hash() ─► mk_request_ref_call() ─► worker: finish_job() ─► waiters
 */
#include "login.h"

#include <monkey/request_ref.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>

enum { TRIES_MAX = 3, NAME_SHOWN_MAX = 64, SUBJECT_BYTES = 320 };

/* On the heap, because it may outlive the requests; the worker frees it, if that exists. */
struct login_job {
    struct mk_message item;      /* in the pool */
    struct mk_request_call call; /* to the first request, which may have ended then */
    struct mk_worker *worker;    /* held */
    struct mk_list node;         /* in auth_worker, as long as requests wait */
    struct mk_list waiters;
    struct auth_process *process;
    const struct auth_limits *limits; /* as long as the worker is held, with the rule */
    const struct auth_rule *rule;
    const struct mk_host *host;
    atomic_bool skip;     /* no request waits */
    bool computed, right; /* the result */
    bool known;           /* the user exists; else the hash is another user's, so that it takes as long */
    uint8_t tries;
    uint64_t began_ms;
    struct mk_address client;
    struct cache_key key;
    enum scheme scheme;
    struct mk_str stored; /* in `stored_bytes` */
    char stored_bytes[SCHEME_HASH_MAX];
    struct basic_credentials credentials;
};

/* The log limits lines by their format: failures of other clients do not hide that a client is blocked. */
static const char failed_format[] = "auth: %s: %s", blocked_format[] = "auth: %s: %s";
static const char blocked[] = "too many failed logins (MaxFailures): its logins get 429 until FailureTime has passed";

/* Prints a name in quotes, which it cannot end: a quote, a percent sign and control bytes are percent-encoded. */
static void print_name(struct mk_buf *out, struct mk_str name)
{
    size_t shown = name.len < NAME_SHOWN_MAX ? name.len : NAME_SHOWN_MAX;
    mk_buf_addc(out, '"');
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c < 0x20 || c == 0x7f || c == '"' || c == '%')
            mk_buf_addf(out, "%%%02X", c);
        else
            mk_buf_addc(out, (char)c);
    }
    mk_buf_addf(out, "\"%s", shown < name.len ? "..." : "");
}

/* Prints what is logged of a client and a user. */
static void print_subject(struct mk_buf *out, const struct mk_address *client, struct mk_str user)
{
    mk_buf_addf(out, "client ");
    mk_address_print(client, out);
    if (!user.p)
        return;
    mk_buf_addf(out, ", user ");
    print_name(out, user);
}

void job_log(struct mk_request *req, enum mk_log_level level, struct mk_str user, const char *what)
{
    struct mk_address client = mk_request_client(req);
    if (!mk_log_wants(level))
        return;
    MK_BUF_ON_STACK(text, SUBJECT_BYTES);
    print_subject(&text, &client, user);
    mk_request_log(req, level, "auth: %s: %s", mk_buf_cstr(&text), what);
}

/*
 * Logs a failure, also when the first request of the job is over: then only the host is known. MaxFailures limits the
 * lines of a client, and MK_LOG_LIMITED_BYTES those of all clients; without it the log limits them as other lines.
 */
static void log_result(const struct login_job *job, struct mk_request *req, struct mk_str user, const char *what)
{
    bool is_limited = job->limits->failures > 0;
    const char *format = what == blocked ? blocked_format : failed_format;
    MK_BUF_ON_STACK(text, SUBJECT_BYTES);
    print_subject(&text, &job->client, user);
    if (req)
        (is_limited ? mk_request_log_text : mk_request_log)(req, MK_LOG_WARN, format, mk_buf_cstr(&text), what);
    else
        (is_limited ? mk_host_log_text : mk_host_log)(job->host, MK_LOG_WARN, format, mk_buf_cstr(&text), what);
}

void job_log_blocked(struct mk_request *req)
{
    struct mk_address client = mk_request_client(req);
    MK_BUF_ON_STACK(text, SUBJECT_BYTES);
    print_subject(&text, &client, MK_STR_NONE);
    mk_request_log_text(req, MK_LOG_WARN, blocked_format, mk_buf_cstr(&text), blocked);
}

void job_log_evictions(struct auth_process *process, uint64_t now_ms)
{
    uint64_t n = failures_take_evictions(&process->evictions, process->failures, now_ms);
    if (n)
        mk_log_warn("auth: the failed logins of %" PRIu64
                    " clients were forgotten, because there are more than %d clients",
                    n, FAILURES_CLIENTS);
}

/* Half of the queue is for one client at most. */
struct failures_limits job_failures_limits(const struct auth_limits *limits)
{
    return (struct failures_limits){.max = (uint32_t)limits->failures,
                                    .time_ms = limits->failures_ms,
                                    .running = (uint32_t)(limits->queue + 1) / 2};
}

static void free_job(struct login_job *job)
{
    explicit_bzero(job, sizeof(*job));
    mk_account_free(NULL, job, sizeof(*job));
}

/* In a thread of the pool. Without memory for `data`, and when the pool is closed, the job ends without a hash. */
static void compute_hash(struct mk_message *item, void *data, bool stopping)
{
    struct login_job *job = MK_CONTAINER_OF(item, struct login_job, item);
    struct hash_work *w = stopping ? NULL : data;
    job->process->hashes += w != NULL;
    job->computed = w && !atomic_load_explicit(&job->skip, memory_order_relaxed);
    job->right = job->computed && hash_matches(w, job->scheme, job->credentials.password, job->stored) && job->known;
    if (mk_request_ref_call(&job->call) == 0)
        return;
    /* the thread of the worker has ended, with all that it held */
    failures_end(job->process->failures, &job->client, job->began_ms, NULL, false);
    free_job(job);
}

static void *begin_thread(void)
{
    return hash_work_new();
}

static void end_thread(void *data)
{
    hash_work_free(data);
}

const struct mk_thread_pool_type job_pool_type = {
    .thread_name = "auth-hash",
    .begin = begin_thread,
    .end = end_thread,
    .run = compute_hash,
};

/*
 * Sets the hash that is computed: the user's, or for an unknown name that of a user of the same file.
 * Returns false if libcrypto fails.
 */
static bool set_stored(struct login_job *job, const struct users *users, const struct htpasswd_user *user)
{
    const struct basic_credentials *c = &job->credentials;
    job->known = user != NULL;
    if (!user)
        user = &users->items[cache_pick(job->process->cache, c->user, users->n)];
    assert(user->hash.len <= sizeof(job->stored_bytes));
    memcpy(job->stored_bytes, user->hash.p, user->hash.len);
    job->stored = mk_str(job->stored_bytes, user->hash.len);
    job->scheme = user->scheme;
    return cache_make_key(job->process->cache, job->stored, c->user, c->password, &job->key);
}

/* ── results ── */

/*
 * Computes the hash again if the user's line in the file has changed meanwhile. Returns true if that was begun; if it
 * cannot be, the result is not known.
 */
static bool retry_job(struct login_job *job)
{
    struct auth_worker *worker = mk_worker_state(job->worker, &mk_plugin_auth);
    const struct users *users = rules_worker_users(worker, job->rule);
    const struct htpasswd_user *user = users_find(users, job->credentials.user);
    if (job->known ? user && mk_str_eq(user->hash, job->stored) : !user)
        return false;
    job->computed = job->right = false;
    return users->n && ++job->tries < TRIES_MAX && set_stored(job, users, user) &&
           mk_thread_pool_add(&job->process->pool, &job->item) == 0;
}

/* Counts and logs the result, and keeps it if it is right. `req` NULL: the first request is over. */
static void record_result(const struct login_job *job, struct mk_request *req, uint64_t now_ms)
{
    struct failures_limits limits = job_failures_limits(job->limits);
    bool failed = job->computed && !job->right;
    mk_log_debug("auth: %" PRIu64 " password hashes were computed", job->process->hashes);
    bool last = failures_end(job->process->failures, &job->client, now_ms, &limits, failed);
    if (job->right && job->limits->cache_ms)
        cache_add(job->process->cache, &job->key, now_ms, job->limits->cache_ms);
    if (failed)
        log_result(job, req, job->credentials.user, job->known ? "wrong password" : "there is no such user");
    if (last)
        log_result(job, req, MK_STR_NONE, blocked);
    job_log_evictions(job->process, now_ms);
}

/* In the worker's thread. A waiter may end the requests of others when it is notified of the result. */
static void finish_job(struct mk_request_call *call, struct mk_request *req)
{
    struct login_job *job = MK_CONTAINER_OF(call, struct login_job, call);
    struct mk_worker *worker = job->worker;
    if (job->computed && !mk_list_empty(&job->waiters) && retry_job(job))
        return;
    record_result(job, req, mk_loop_now_ms(mk_worker_loop(worker)));
    mk_list_del(&job->node);
    while (!mk_list_empty(&job->waiters)) {
        struct job_waiter *w = MK_CONTAINER_OF(job->waiters.next, struct job_waiter, node);
        assert(w->job == job);
        mk_list_del(&w->node);
        w->job = NULL;
        w->done(w, !job->computed ? JOB_SKIPPED : job->right ? JOB_ACCEPTED : JOB_REJECTED, job->credentials.user);
    }
    free_job(job);
    mk_worker_put(worker);
}

void job_leave(struct job_waiter *w)
{
    struct login_job *job = w->job;
    if (!job)
        return;
    w->job = NULL;
    mk_list_del(&w->node);
    if (!mk_list_empty(&job->waiters))
        return;
    mk_list_del(&job->node); /* nothing may join it: the thread may have skipped it already */
    atomic_store_explicit(&job->skip, true, memory_order_relaxed);
}

/* ── start ── */

static struct login_job *make_job(struct mk_request *req, const struct job_login *login)
{
    struct login_job *job = mk_account_zalloc(NULL, sizeof(*job));
    if (!job)
        return NULL;
    job->call.fn = finish_job;
    mk_list_init(&job->node);
    mk_list_init(&job->waiters);
    job->process = login->process;
    job->limits = login->limits;
    job->rule = login->rule;
    job->host = mk_request_host_conf(req);
    job->client = login->client;
    job->began_ms = mk_loop_now_ms(mk_request_loop(req));
    job->credentials = *login->credentials; /* whose strings then point into the copy */
    job->credentials.user.p = job->credentials.bytes;
    job->credentials.password.p = job->credentials.bytes + (login->credentials->password.p - login->credentials->bytes);
    if (set_stored(job, login->users, login->user) && mk_request_ref(req, &job->call.ref) == 0)
        return job;
    free_job(job);
    return NULL;
}

/* Returns the job of the same login that runs already, or NULL. */
static struct login_job *find_running(const struct auth_worker *worker, const struct login_job *like)
{
    MK_LIST_EACH_ITEM(&worker->jobs, struct login_job, node, job)
        if (cache_is_same(&job->key, &like->key) && job->rule->users == like->rule->users &&
            mk_address_equal(&job->client, &like->client))
            return job;
    return NULL;
}

/* Passes a job to the pool. Returns 0 or -errno. */
static int submit_job(struct login_job *job, struct mk_worker *worker)
{
    struct failures_limits limits = job_failures_limits(job->limits);
    if (!failures_begin(job->process->failures, &job->client, job->began_ms, &limits))
        return -EBUSY;
    job->worker = mk_worker_get(worker);
    int err = mk_thread_pool_add(&job->process->pool, &job->item);
    if (err == 0)
        return 0;
    failures_end(job->process->failures, &job->client, job->began_ms, &limits, false);
    mk_worker_put(worker);
    return err;
}

int job_start(struct job_waiter *w, struct mk_request *req, const struct job_login *login)
{
    struct mk_worker *worker = mk_request_worker(req);
    struct auth_worker *state = mk_worker_state(worker, &mk_plugin_auth);
    struct login_job *job = make_job(req, login);
    if (!job)
        return -ENOMEM;
    struct login_job *running = find_running(state, job);
    int err = running ? 0 : submit_job(job, worker);
    if (err == 0) {
        w->job = running ? running : job;
        mk_list_add(&w->job->waiters, &w->node);
    }
    if (err == 0 && !running)
        mk_list_add(&state->jobs, &job->node);
    else
        free_job(job);
    return err;
}
