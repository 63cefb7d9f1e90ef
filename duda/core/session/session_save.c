// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and writes the sessions of requests (session.h): in memory at once, in files and backends by a job.
 *
 *     open(), save() ─► struct session_job ─► disk thread, backend ─► the worker ─► fn(), if the request has not ended
 *
 * A job has copies of all it needs, so that it also ends well without its request.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "common/heap.h"
#include "request/request.h"
#include "session/session.h"
#include "session/session_file.h"

#include <errno.h>

enum job_kind { JOB_LOAD, JOB_COMMIT, JOB_CLEAN };

struct session_job {
    struct mk_job job;
    enum job_kind kind;
    struct session_store *store;
    struct session_commit commit; /* of JOB_LOAD only `from` */
    void *changes;                /* of the commit, with their texts */
    size_t changes_bytes;
    int result;
    struct mk_str values;    /* of JOB_LOAD; on the heap */
    struct duda_request *dr; /* NULL: it has ended */
};

static void free_values(struct mk_str values)
{
    heap_free((char *)(uintptr_t)values.p, values.len);
}

/* ── results ── */

static void finish_open(struct session_state *s, int result, struct mk_str values)
{
    assert(s->phase == SESSION_OPENING && !s->values.p);
    s->phase = SESSION_OPEN;
    s->found = result == 0;
    s->values = values;
}

static bool needs_cookie(const struct session_state *s)
{
    return s->begins || s->renews || (s->destroys && s->has_cookie);
}

/* Returns whether the service can still add headers. */
static bool holds_head(struct duda_request *dr)
{
    return (dr->output.state == OUTPUT_HELD || dr->is_before_head) && !mk_response_head_sent(dr->req);
}

static int send_cookie(struct duda_request *dr, const struct session_state *s)
{
    if (!needs_cookie(s))
        return 0;
    if (!holds_head(dr))
        return -EALREADY;
    return session_cookie_set(dr, session_exists(s) ? &s->new_id : NULL, s->cookie_expires);
}

/* The request continues with what it has written. */
static void keep_changes(struct session_state *s)
{
    bool is_new = s->begins || s->renews;
    struct session_change **end = &s->changes;
    while (*end)
        end = &(*end)->next;
    *end = s->saved;
    s->saved = s->changes;
    s->changes = NULL;
    s->n_changes = 0;
    s->found = session_exists(s);
    s->has_cookie = s->found && (s->has_cookie || is_new);
    if (is_new)
        s->key = s->new_key;
    s->is_own_id = s->is_own_id || is_new;
    s->begins = s->renews = s->destroys = false;
}

/* Returns the result for the service. */
static int finish_save(struct duda_request *dr, struct session_state *s, int result)
{
    assert(s->phase != SESSION_OPENING);
    s->phase = SESSION_OPEN;
    if (result < 0)
        return result;
    int err = send_cookie(dr, s);
    keep_changes(s);
    return err;
}

/* ── jobs ── */

static void free_job(struct session_job *job)
{
    free_values(job->values);
    session_store_unref(job->store);
    heap_free(job->changes, job->changes_bytes);
    heap_free(job, sizeof(*job));
}

/* On a disk thread. */
static void run_job(struct mk_job *base)
{
    struct session_job *job = MK_CONTAINER_OF(base, struct session_job, job);
    int64_t now = session_store_now(job->store);
    if (job->kind == JOB_LOAD)
        job->result = session_file_load(job->store, &job->commit.from, now, &job->values);
    else if (job->kind == JOB_COMMIT)
        job->result = session_file_commit(job->store, &job->commit, now);
    else
        job->result = session_file_clean(job->store, now);
}

static struct session_job *new_job(enum job_kind kind, struct session_store *store)
{
    struct session_job *job = heap_zalloc(sizeof(*job));
    if (!job)
        return NULL;
    job->kind = kind;
    job->store = store;
    session_store_ref(store);
    return job;
}

static void finish_clean(struct mk_job *base)
{
    free_job(MK_CONTAINER_OF(base, struct session_job, job));
}

/* Begins to look for expired files, if it is time. */
static void clean_store(struct mk_loop *loop, struct session_store *store)
{
    struct session_job *job = NULL;
    if (session_file_must_clean(store, session_store_now(store)))
        job = new_job(JOB_CLEAN, store);
    if (!job)
        return;
    job->job.work = run_job;
    job->job.done = finish_clean;
    if (mk_job_submit(loop, &job->job) < 0)
        free_job(job);
}

/* In the worker: gives the request what the job has done. */
static void deliver_job(struct session_job *job)
{
    struct duda_request *dr = job->dr;
    struct session_state *s = dr->session;
    int result = job->result;
    s->job = NULL;
    if (job->kind == JOB_LOAD) {
        finish_open(s, result, job->values);
        job->values = MK_STR_NONE;
        result = result == -ENOENT ? 0 : result;
    } else {
        result = finish_save(dr, s, result);
    }
    struct current outer = request_enter(dr);
    atomic_store_explicit(&dr->worker->watch.function, (uintptr_t)s->fn, memory_order_relaxed);
    s->fn(dr, result, s->data);
    current_leave(outer);
}

static void finish_job(struct mk_job *base)
{
    struct session_job *job = MK_CONTAINER_OF(base, struct session_job, job);
    clean_store(base->loop, job->store);
    if (job->dr)
        deliver_job(job);
    free_job(job);
}

/* ── backends ── */

static struct duda_session_scope get_scope(const struct session_store *store, const struct session_limits *limits)
{
    return (struct duda_session_scope){
        .host = store->host,
        .service = store->service,
        .idle_s = (uint32_t)limits->idle_s,
        .sessions_max = limits->sessions_max,
        .session_bytes = limits->session_bytes,
    };
}

/* Makes the values of what a backend has read. Returns 0, -EIO (they are no session's) or -ENOMEM. */
static int take_pairs(const struct duda_session_pair *pairs, unsigned n, struct mk_str *ret)
{
    struct session_change *changes = n ? heap_zalloc(n * sizeof(*changes)) : NULL;
    *ret = MK_STR_NONE;
    if (n && !changes)
        return -ENOMEM;
    bool fits = true;
    for (unsigned i = 0; i < n; i++) {
        changes[i].next = i + 1 < n ? &changes[i + 1] : NULL;
        changes[i].key = mk_str(pairs[i].key, pairs[i].key_len);
        changes[i].value = mk_str(pairs[i].value, pairs[i].value_len);
        fits = fits && pairs[i].key_len && pairs[i].key_len <= DUDA_SESSION_KEY_BYTES &&
               pairs[i].value_len <= DUDA_SESSION_BYTES_MAX;
    }
    int err = fits ? session_values_apply(MK_STR_NONE, changes, DUDA_SESSION_BYTES_MAX, ret) : -ENOSPC;
    heap_free(changes, n * sizeof(*changes));
    return err == -ENOSPC ? -EIO : err;
}

/* A backend has done its work. */
static void finish_backend(void *ctx, int result, const struct duda_session_pair *pairs, unsigned n)
{
    struct session_job *job = ctx;
    job->result = result;
    if (result == 0 && job->kind == JOB_LOAD)
        job->result = take_pairs(pairs, n, &job->values);
    if (job->dr)
        deliver_job(job);
    free_job(job);
}

static int commit_to_backend(const struct duda_session_backend *backend, const struct duda_session_scope *scope,
                             struct session_job *job)
{
    const struct session_commit *c = &job->commit;
    struct duda_session_pair pairs[DUDA_SESSION_KEYS_MAX];
    struct duda_session_commit commit = {
        .from = c->has_from ? c->from.bytes : NULL,
        .to = c->has_to ? c->to.bytes : NULL,
        .drops = c->drops,
        .changes = pairs,
        .life_s = (uint32_t)(c->ends - session_store_now(job->store)),
    };
    for (const struct session_change *change = c->changes; change; change = change->next)
        pairs[commit.n++] = (struct duda_session_pair){
            .key = change->key.p,
            .value = change->value.p,
            .key_len = change->key.len,
            .value_len = change->removes ? 0 : change->value.len,
            .removes = change->removes,
        };
    return backend->commit(backend->data, scope, &commit, finish_backend, job);
}

static int submit_to_backend(const struct duda_session_backend *backend, struct session_job *job)
{
    struct session_limits limits = session_store_limits(job->store);
    struct duda_session_scope scope = get_scope(job->store, &limits);
    if (job->kind == JOB_LOAD)
        return backend->load(backend->data, &scope, job->commit.from.bytes, finish_backend, job);
    return commit_to_backend(backend, &scope, job);
}

/* ── beginning ── */

static int submit_job(struct duda_request *dr, struct session_job *job, duda_session_fn fn, void *data)
{
    struct session_state *s = dr->session;
    const struct duda_session_backend *backend = sessions_of(dr->worker->service)->backend;
    job->dr = dr;
    job->job.work = run_job;
    job->job.done = finish_job;
    int err = backend ? submit_to_backend(backend, job) : mk_job_submit(mk_request_loop(dr->req), &job->job);
    if (err < 0) {
        free_job(job);
        return backend ? err : -ENOMEM;
    }
    s->job = job;
    s->fn = fn;
    s->data = data;
    return 0;
}

/* ── opening ── */

static int load_slowly(struct duda_request *dr, struct session_state *s, duda_session_fn fn, void *data)
{
    struct session_job *job = new_job(JOB_LOAD, sessions_of(dr->worker->service)->store);
    if (!job)
        return -ENOMEM;
    job->commit.from = s->key;
    return submit_job(dr, job, fn, data);
}

int session_open(struct duda_request *dr, duda_session_fn fn, void *data)
{
    const struct service_sessions *conf = sessions_of(dr->worker->service);
    struct session_store *store = conf->store;
    struct session_state *s = mk_arena_zalloc(mk_request_arena(dr->req), sizeof(*s));
    struct mk_str values = MK_STR_NONE;
    bool is_valid;
    if (!s)
        return -ENOMEM;
    dr->session = s;
    request_use(dr, FEATURE_SESSION);
    s->store = store;
    session_store_adopt(store, conf->version, &conf->limits);
    s->has_cookie = session_cookie_find(dr, &s->key, &is_valid);
    if (is_valid && session_is_slow(conf)) {
        int err = load_slowly(dr, s, fn, data);
        if (err < 0)
            dr->session = NULL;
        return err;
    }
    int result = is_valid ? session_memory_load(store, &s->key, session_store_now(store), &values) : -ENOENT;
    finish_open(s, result, values);
    result = result == -ENOENT ? 0 : result;
    if (!fn)
        return result;
    fn(dr, result, data);
    return 0;
}

/* ── saving ── */

static struct session_commit make_commit(const struct duda_request *dr, const struct session_state *s)
{
    const struct service_sessions *conf = sessions_of(dr->worker->service);
    bool is_new = s->begins || s->renews;
    return (struct session_commit){
        .has_from = s->found,
        .has_to = session_exists(s),
        .drops = s->destroys,
        .from = s->key,
        .to = is_new ? s->new_key : s->key,
        .changes = s->changes,
        .ends = session_store_now(conf->store) + (s->life_s ? s->life_s : conf->absolute_s),
    };
}

/* Returns whether the store has to do something. */
static bool is_changed(const struct session_state *s)
{
    return s->begins || (s->found && (s->changes || s->renews || s->destroys));
}

static struct mk_str copy_text(char **to, struct mk_str text)
{
    struct mk_str copy = mk_str(*to, text.len);
    if (text.len)
        memcpy(*to, text.p, text.len);
    *to += text.len;
    return copy;
}

/* Copies the changes, which are in the request's arena, into the job. Returns 0 or -ENOMEM. */
static int copy_changes(struct session_job *job, const struct session_state *s)
{
    size_t n = s->n_changes, bytes = n * sizeof(struct session_change);
    for (const struct session_change *c = s->changes; c; c = c->next)
        bytes += c->key.len + c->value.len;
    job->commit.changes = NULL;
    struct session_change *copies = bytes ? heap_zalloc(bytes) : NULL;
    if (!copies)
        return bytes ? -ENOMEM : 0;
    job->changes = copies;
    job->changes_bytes = bytes;
    job->commit.changes = copies;
    char *to = (char *)(copies + n);
    for (const struct session_change *c = s->changes; c; c = c->next, copies++) {
        copies->next = c->next ? copies + 1 : NULL;
        copies->removes = c->removes;
        copies->key = copy_text(&to, c->key);
        copies->value = copy_text(&to, c->value);
    }
    return 0;
}

static int save_slowly(struct duda_request *dr, struct session_state *s, duda_session_fn fn, void *data)
{
    assert(s->phase == SESSION_OPEN && !s->job);
    struct session_job *job = new_job(JOB_COMMIT, sessions_of(dr->worker->service)->store);
    if (!job)
        return -ENOMEM;
    job->commit = make_commit(dr, s);
    if (copy_changes(job, s) < 0) {
        free_job(job);
        return -ENOMEM;
    }
    int err = submit_job(dr, job, fn, data);
    if (err == 0)
        s->phase = SESSION_SAVING;
    return err;
}

int session_save(struct duda_request *dr, struct session_state *s, duda_session_fn fn, void *data)
{
    struct session_store *store = sessions_of(dr->worker->service)->store;
    s->was_saved = true;
    if (needs_cookie(s) && !holds_head(dr))
        return request_refuse(dr, "session->save()", -EALREADY, "the head was sent, so that the cookie cannot be set");
    if (is_changed(s) && session_is_slow(sessions_of(dr->worker->service)))
        return save_slowly(dr, s, fn, data);
    int result = 0;
    if (is_changed(s)) {
        struct session_commit commit = make_commit(dr, s);
        result = session_memory_commit(store, &commit, session_store_now(store));
    }
    result = finish_save(dr, s, result);
    if (!fn)
        return result;
    fn(dr, result, data);
    return 0;
}

void session_release(struct duda_request *dr)
{
    struct session_state *s = dr->session;
    if (!s)
        return;
    if (s->job)
        s->job->dr = NULL;
    else if (dr->answered && !s->was_saved && (s->changes || s->begins || s->renews || s->destroys))
        api_error_log(dr->worker, "session->set()",
                      "the request has ended without session->save(): nothing was written");
    free_values(s->values);
    dr->session = NULL;
}
