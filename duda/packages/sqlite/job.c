// SPDX-License-Identifier: Apache-2.0
/*
 * What a call has a connection do.
 */
#include "job.h"

#include <duda/mem.h>

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

/* Transactions of this thread: one in each database at most. */
struct transaction {
    duda_sqlite_t *db;
    struct sq_conn *conn;
    struct transaction *below;
};

static _Thread_local struct transaction *innermost;

const char *sq_job_name(const struct sq_job *job)
{
    assert(job->kind <= SQ_TRANSACTION);
    static const char *const names[] = {
        [SQ_QUERY] = "query", [SQ_WRITING_QUERY] = "query", [SQ_EXEC] = "exec", [SQ_TRANSACTION] = "transaction"};
    return names[job->kind];
}

/* ── copies ── */

static bool has_bytes(const struct duda_sqlite_value *v)
{
    return (v->type == DUDA_SQLITE_TEXT || v->type == DUDA_SQLITE_BLOB) && v->len;
}

static size_t count_bytes(const struct sq_job *job)
{
    size_t bytes = job->sql ? strlen(job->sql) + 1 : 0;
    for (size_t i = 0; i < job->n; i++)
        bytes += has_bytes(&job->args[i]) ? job->args[i].len : 0;
    return bytes;
}

static char *append_bytes(char *to, const void *bytes, size_t len)
{
    memcpy(to, bytes, len);
    return to + len;
}

/* struct sq_job │ arguments │ SQL │ bytes of texts and blobs */
struct sq_job *sq_job_copy(const struct sq_job *job)
{
    size_t values = job->n * sizeof(*job->args);
    struct sq_job *copy = mem->alloc(sizeof(*copy) + values + count_bytes(job));
    if (!copy)
        return NULL;
    *copy = *job;
    struct duda_sqlite_value *args = (struct duda_sqlite_value *)(copy + 1);
    char *end = (char *)args + values;
    copy->args = args;
    if (job->sql) {
        copy->sql = end;
        end = append_bytes(end, job->sql, strlen(job->sql) + 1);
    }
    for (size_t i = 0; i < job->n; i++) {
        args[i] = job->args[i];
        if (!has_bytes(&args[i]))
            continue;
        args[i].bytes = end;
        end = append_bytes(end, job->args[i].bytes, args[i].len);
    }
    assert(end == (char *)args + values + count_bytes(job));
    return copy;
}

void sq_job_free(void *data)
{
    struct sq_job *job = data;
    assert(!job->link || atomic_load(&job->link->waiting) > 0);
    if (job->link)
        atomic_fetch_sub(&job->link->waiting, 1);
    mem->free(job->result.rows);
    mem->free(job);
}

/* ── work ── */

static int run_query(struct sq_job *job, struct sq_conn *conn)
{
    assert(job->sql);
    int err = sq_conn_run(conn, job->sql, job->args, job->n, &job->result.rows, NULL, &job->error);
    if (err == SQ_WRITES)
        job->kind = SQ_WRITING_QUERY;
    return err;
}

/* As a transaction, because SQLite keeps what a statement has written whose rows are not all taken. */
static int run_writing_query(struct sq_job *job, struct sq_conn *conn)
{
    int err = sq_conn_begin(conn, &job->error);
    if (err == 0)
        err = sq_conn_end(conn, run_query(job, conn), &job->error);
    if (err < 0) {
        mem->free(job->result.rows);
        job->result.rows = NULL;
    }
    return err;
}

static int run_transaction(struct sq_job *job, struct sq_conn *conn)
{
    assert(job->work);
    struct transaction t = {.db = job->db, .conn = conn, .below = innermost};
    int err = sq_conn_begin(conn, &job->error);
    if (err)
        return err;
    sq_clear_error();
    innermost = &t;
    err = job->work(job->db, job->data);
    innermost = t.below;
    if (err < 0) {
        const char *last = sq_last_error();
        sq_error_set(&job->error, err, "%s", last ? last : "the function of the transaction has returned an error");
        job->is_logged = true;
    }
    return sq_conn_end(conn, err, &job->error);
}

static int run_job(struct sq_job *job, struct sq_conn *conn)
{
    switch (job->kind) {
    case SQ_QUERY:
        return run_query(job, conn);
    case SQ_WRITING_QUERY:
        return run_writing_query(job, conn);
    case SQ_EXEC:
        return sq_conn_run(conn, job->sql, job->args, job->n, NULL, &job->result.change, &job->error);
    default:
        return run_transaction(job, conn);
    }
}

bool sq_job_run_inside(struct sq_job *job)
{
    struct transaction *t = innermost;
    while (t && t->db != job->db)
        t = t->below;
    if (!t)
        return false;
    if (job->kind == SQ_TRANSACTION)
        job->result.err = sq_error_set(&job->error, -EINVAL, "%s: a transaction runs already", job->db->conf.name);
    else
        job->result.err = run_job(job, t->conn);
    return true;
}

/* Waits until no other thread uses the connection. Returns false at the end of the time. */
static bool take_link(struct sq_link *link, uint64_t end_ms)
{
    struct timespec end = {.tv_sec = (time_t)(end_ms / 1000), .tv_nsec = (long)(end_ms % 1000) * 1000000};
    int err = 0;
    pthread_mutex_lock(&link->lock);
    while (link->is_used && err == 0)
        err = pthread_cond_timedwait(&link->unused, &link->lock, &end);
    bool taken = !link->is_used;
    link->is_used = true;
    pthread_mutex_unlock(&link->lock);
    return taken;
}

static void put_link(struct sq_link *link)
{
    pthread_mutex_lock(&link->lock);
    assert(link->is_used);
    link->is_used = false;
    pthread_cond_signal(&link->unused);
    pthread_mutex_unlock(&link->lock);
}

void sq_job_run(struct sq_job *job, struct sq_link *link)
{
    assert(job->db && !job->error.err);
    if (!take_link(link, job->deadline.end_ms)) {
        job->result.err =
            sq_error_set(&job->error, -ETIMEDOUT, "%s: another thread has used the connection for %u ms (query_ms)",
                         job->db->conf.name, job->db->conf.query_ms);
        return;
    }
    link->conn.deadline = job->deadline;
    link->conn.was_stopped = false;
    job->result.err = run_job(job, &link->conn);
    put_link(link);
}
