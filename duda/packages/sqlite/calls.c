// SPDX-License-Identifier: Apache-2.0
/*
 * The calls of services: where a job runs, and how its caller gets the result.
 *
 *     a transaction of this thread     in its connection
 *     dthread                          task->await(), with a copy of the job; transactions: task->run()
 *     callbacks (_then)                task->start()
 *     other threads, duda_main()       here
 */
#include "job.h"

#include <duda/dthread.h>
#include <duda/mem.h>
#include <duda/msg.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { GRACE_MS = 500, LOGGED_SQL_BYTES = 160, PLACE_BYTES = 256 };

/* ── errors ── */

static _Thread_local struct sq_error last_error;

const char *sq_last_error(void)
{
    return last_error.err ? last_error.text : NULL;
}

void sq_clear_error(void)
{
    last_error.err = 0;
}

static int keep_error(const struct sq_error *e)
{
    last_error = *e;
    return e->err;
}

static bool is_of_client(int err)
{
    return err == -EEXIST || err == -ERANGE || err == -ECONNABORTED || err == -ECANCELED;
}

/* With the SQL, and where the service has called. `missing`: the number of lines before that were not written. */
static void log_error(const struct sq_job *job, const char *call, const struct sq_error *e, unsigned missing)
{
    char place[PLACE_BYTES], sql[LOGGED_SQL_BYTES + 8] = "", more[64] = "";
    bool has_place = duda_package_loader->describe_call(job ? job->caller : NULL, place, sizeof(place));
    if (job && job->sql)
        snprintf(sql, sizeof(sql), " (%.*s%s)", LOGGED_SQL_BYTES, job->sql,
                 strlen(job->sql) > LOGGED_SQL_BYTES ? "..." : "");
    if (missing)
        snprintf(more, sizeof(more), " (%u errors before were not logged)", missing);
    msg->warn("sqlite->%s(): %s%s%s%s%s", call, e->text, sql, has_place ? ", in " : "", place, more);
}

int sq_report(const struct sq_job *job, const char *call, const struct sq_error *e)
{
    unsigned missing = 0;
    keep_error(e);
    if (!is_of_client(e->err) &&
        (!job || sq_log_is_due(&job->db->log, job->sql, e->err, mk_time_monotonic_ms(), &missing)))
        log_error(job, call, e, missing);
    return e->err;
}

static int end_call(struct sq_job *job)
{
    if (job->result.err >= 0)
        sq_clear_error();
    else if (job->is_logged)
        keep_error(&job->error);
    else
        sq_report(job, sq_job_name(job), &job->error);
    return job->result.err;
}

static int fail_job(struct sq_job *job, int err, const char *reason)
{
    job->result.err = sq_error_set(&job->error, err, "%s: %s", job->db->conf.name, reason);
    return err;
}

/* What an error of the object `task` means for a call. */
static int fail_task(struct sq_job *job, int err)
{
    switch (err) {
    case -EBUSY:
        return fail_job(job, -EAGAIN, "too many tasks of the service wait for a thread");
    case -ETIMEDOUT:
        return fail_job(job, err, "the call has waited too long for its turn, or the disk does not answer");
    case -ECONNABORTED:
        return fail_job(job, err, "the request has ended meanwhile");
    case -ECANCELED:
        return fail_job(job, err, "the call was cancelled, or the service ends");
    default:
        return fail_job(job, err, strerror(-err));
    }
}

/* ── jobs ── */

/* The connection that the fewest tasks wait for. */
static struct sq_link *choose_link(const struct sq_job *job)
{
    duda_sqlite_t *db = job->db;
    struct sq_link *best = job->kind == SQ_QUERY ? &db->readers[0] : &db->writer;
    for (unsigned i = 1; job->kind == SQ_QUERY && i < db->conf.readers; i++)
        if (atomic_load(&db->readers[i].waiting) < atomic_load(&best->waiting))
            best = &db->readers[i];
    return best;
}

static void set_deadline(struct sq_job *job)
{
    uint64_t now_ms = mk_time_monotonic_ms();
    job->deadline.busy_ms = now_ms + job->db->conf.busy_ms;
    job->deadline.end_ms = now_ms + job->db->conf.query_ms;
}

/* Counts the job as one that waits for the connection. */
static int count_waiting(struct sq_job *job, struct sq_link *link)
{
    if (atomic_fetch_add(&link->waiting, 1) < job->db->conf.waiting_max) {
        job->link = link;
        return 0;
    }
    atomic_fetch_sub(&link->waiting, 1);
    return fail_job(job, -EAGAIN, "as many calls as waiting_max allows wait already");
}

/* Runs in a thread of the pool. */
static void run_task(void *data)
{
    struct sq_job *job = data;
    sq_job_run(job, job->link);
}

/* Returns a copy for the pool, or NULL, with the reason in `job`. */
static struct sq_job *make_task(struct sq_job *job)
{
    int err = count_waiting(job, choose_link(job));
    struct sq_job *copy = err ? NULL : sq_job_copy(job);
    if (!err && !copy) {
        atomic_fetch_sub(&job->link->waiting, 1);
        fail_job(job, -ENOMEM, "no memory");
    }
    job->link = NULL;
    return copy;
}

/* ── in a dthread ── */

static void await_copy(struct sq_job *job)
{
    struct sq_job *copy = make_task(job);
    if (!copy)
        return;
    struct duda_task_kind kind = {.fn = run_task, .drop = sq_job_free, .serial = copy->link->serial};
    int err = task->await(&kind, copy, job->db->conf.query_ms + GRACE_MS);
    if (err) {
        fail_task(job, err);
        return;
    }
    job->kind = copy->kind;
    job->result = copy->result;
    job->error = copy->error;
    copy->result.rows = NULL;
    sq_job_free(copy);
}

/* The function of the transaction may use what is on the stack of the dthread, which waits for its end. */
static void run_transaction(struct sq_job *job)
{
    struct sq_link *link = &job->db->writer;
    if (count_waiting(job, link))
        return;
    int err = task->run(link->serial, run_task, job, job->db->conf.query_ms);
    if (err)
        fail_task(job, err);
    atomic_fetch_sub(&link->waiting, 1);
}

/* ── calls that wait ── */

static bool is_complete(const struct sq_job *job)
{
    return job->db && (job->kind == SQ_TRANSACTION ? (bool)job->work : job->sql && (job->args || !job->n));
}

/* A mistake of the service, which no database limits. */
static int refuse_call(const char *name)
{
    struct sq_error e;
    char call[64];
    snprintf(call, sizeof(call), "sqlite->%s()", name);
    sq_error_set(&e, -EINVAL, "an argument is NULL");
    duda_package_loader->api_error(call, e.text);
    return keep_error(&e);
}

static void run_once(struct sq_job *job)
{
    if (!duda_package_loader->worker(&sq_package))
        sq_job_run(job, choose_link(job));
    else if (!dthread->running())
        fail_job(job, -EPERM,
                 "a callback of a worker must not wait: call it in a dthread, or one of the _then functions");
    else if (job->kind == SQ_TRANSACTION)
        run_transaction(job);
    else
        await_copy(job);
}

static int call_job(struct sq_job *job)
{
    if (!is_complete(job))
        return refuse_call(sq_job_name(job));
    set_deadline(job);
    if (sq_job_run_inside(job))
        return end_call(job);
    enum sq_kind kind = job->kind;
    run_once(job);
    if (job->kind != kind) /* it writes */
        run_once(job);
    return end_call(job);
}

int sq_query(duda_sqlite_t *db, duda_sqlite_rows_t **ret, const char *sql, const struct duda_sqlite_value *args,
             size_t n)
{
    struct sq_job job = {.db = ret ? db : NULL, .kind = SQ_QUERY, .sql = sql, .args = args, .n = n};
    int err = call_job(&job);
    if (ret)
        *ret = job.result.rows;
    return err;
}

int sq_exec(duda_sqlite_t *db, struct duda_sqlite_change *ret, const char *sql, const struct duda_sqlite_value *args,
            size_t n)
{
    struct sq_job job = {.db = db, .kind = SQ_EXEC, .sql = sql, .args = args, .n = n};
    int err = call_job(&job);
    if (ret)
        *ret = job.result.change;
    return err;
}

int sq_transaction(duda_sqlite_t *db, duda_sqlite_transaction_fn fn, void *data)
{
    struct sq_job job = {.db = db, .kind = SQ_TRANSACTION, .work = fn, .data = data};
    return call_job(&job);
}

/* ── calls with a callback ── */

static bool start_task(duda_request_t *dr, struct sq_job *copy);

/* Has a query that has turned out to write run again. Returns false if it cannot: the job has an error. */
static bool start_again(duda_request_t *dr, struct sq_job *job)
{
    atomic_fetch_sub(&job->link->waiting, 1);
    job->link = NULL;
    if (count_waiting(job, &job->db->writer))
        return false;
    if (start_task(dr, job))
        return true;
    fail_task(job, -errno);
    return false;
}

/* In the worker: `result` is 0, or the job was not run. */
static void finish_job(duda_request_t *dr, int result, void *data)
{
    struct sq_job *job = data;
    if (result < 0)
        fail_task(job, result);
    else if (job->kind == SQ_WRITING_QUERY && job->link != &job->db->writer && start_again(dr, job))
        return;
    end_call(job);
    job->result.error = job->result.err < 0 ? job->error.text : NULL;
    if (job->fn)
        job->fn(dr, &job->result, job->data);
    duda_package_loader->explain_crash("the rows of a callback are freed behind it: it must not free them, unless it "
                                       "sets `rows` to NULL");
    sq_job_free(job);
    duda_package_loader->explain_crash(NULL);
}

static bool start_task(duda_request_t *dr, struct sq_job *copy)
{
    struct duda_task_kind kind = {.fn = run_task,
                                  .done = finish_job,
                                  .drop = sq_job_free,
                                  .serial = copy->link->serial,
                                  .queue_ms = copy->db->conf.query_ms};
    return task->start(dr, &kind, copy);
}

static int call_then(duda_request_t *dr, struct sq_job *job)
{
    if (!is_complete(job))
        return refuse_call(sq_job_name(job));
    set_deadline(job);
    struct sq_job *copy = make_task(job);
    if (!copy)
        return end_call(job);
    if (start_task(dr, copy)) {
        sq_clear_error();
        return 0;
    }
    fail_task(job, -errno);
    sq_job_free(copy);
    return end_call(job);
}

int sq_query_then(duda_request_t *dr, duda_sqlite_t *db, const char *sql, const struct duda_sqlite_value *args,
                  size_t n, duda_sqlite_fn fn, void *data)
{
    struct sq_job job = {
        .db = fn ? db : NULL, .kind = SQ_QUERY, .sql = sql, .args = args, .n = n, .fn = fn, .data = data};
    job.caller = __builtin_return_address(0);
    return call_then(dr, &job);
}

int sq_exec_then(duda_request_t *dr, duda_sqlite_t *db, const char *sql, const struct duda_sqlite_value *args, size_t n,
                 duda_sqlite_fn fn, void *data)
{
    struct sq_job job = {.db = db, .kind = SQ_EXEC, .sql = sql, .args = args, .n = n, .fn = fn, .data = data};
    job.caller = __builtin_return_address(0);
    return call_then(dr, &job);
}

int sq_transaction_then(duda_request_t *dr, duda_sqlite_t *db, duda_sqlite_transaction_fn work, duda_sqlite_fn fn,
                        void *data)
{
    struct sq_job job = {.db = db, .kind = SQ_TRANSACTION, .work = work, .fn = fn, .data = data};
    job.caller = __builtin_return_address(0);
    return call_then(dr, &job);
}
