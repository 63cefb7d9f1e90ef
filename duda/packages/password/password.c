// SPDX-License-Identifier: Apache-2.0
/*
 * The package password: where a call is computed, and how its caller gets the result.
 *
 *     dthread                        task->await(), with a job on the heap
 *     callbacks (_then)              task->start()
 *     other threads, duda_main()     here
 */
#include "compute.h"

#include <duda/dthread.h>
#include <duda/mem.h>
#include <duda/task.h>
#include <duda/worker.h>

#include <string.h>

/* Logs what the service or the machine is the cause of. Returns `err`. */
static int report_error(const char *call, int err)
{
    const char *reason = NULL;
    if (err == -EINVAL)
        reason = "an argument is NULL or empty, or the hash is none of yescrypt, bcrypt, SHA-512 and SHA-256, or of "
                 "too high a cost";
    else if (err == -EPERM)
        reason =
            "a callback of a worker must not wait: call it in a dthread, or the _then function; that one in a worker";
    else if (err == -EIO)
        reason = "libcrypt has failed";
    if (reason)
        duda_package_loader->api_error(call, reason);
    return err;
}

static void free_job(void *data)
{
    explicit_bzero(data, sizeof(struct pw_job));
    mem->free(data);
}

/* Returns a job, or NULL with the reason in `*ret_err`. */
static struct pw_job *make_job(const char *text, const char *hash, bool verifies, int *ret_err)
{
    struct pw_job *job = mem->alloc_z(sizeof(*job));
    *ret_err = job ? pw_job_set(job, text, hash, verifies) : -ENOMEM;
    if (*ret_err == 0)
        return job;
    mem->free(job);
    return NULL;
}

/* ── calls that wait ── */

/* Runs a job, which the task frees after an error. */
static int run_job(struct pw_job *job)
{
    static const struct duda_task_kind kind = {.fn = pw_job_run, .drop = free_job};
    if (worker->index() >= 0)
        return task->await(&kind, job, DUDA_PASSWORD_WAIT_MS);
    pw_job_run(job);
    return 0;
}

/* `out` is written if the job does not verify, and may be NULL otherwise. */
static int call_hasher(const char *name, const char *text, const char *hash, char *out)
{
    int err;
    if (worker->index() >= 0 && !dthread->running())
        return report_error(name, -EPERM);
    struct pw_job *job = make_job(text, hash, !out, &err);
    if (job)
        err = run_job(job);
    if (!job || err < 0)
        return report_error(name, err);
    err = job->result;
    if (err == 0 && out)
        memcpy(out, job->hash, sizeof(job->hash));
    free_job(job);
    return report_error(name, err);
}

static int hash_password(const char *text, char hash[DUDA_PASSWORD_HASH_BYTES])
{
    return hash ? call_hasher("password->hash()", text, NULL, hash) : report_error("password->hash()", -EINVAL);
}

static int verify_password(const char *text, const char *hash)
{
    return call_hasher("password->verify()", text, hash, NULL);
}

/* ── calls with a callback ── */

static void finish_job(duda_request_t *dr, int result, void *data)
{
    struct pw_job *job = data;
    result = report_error(job->verifies ? "password->verify_then()" : "password->hash_then()",
                          result < 0 ? result : job->result);
    job->fn(dr, result, result == 0 && !job->verifies ? job->hash : NULL, job->data);
    free_job(job);
}

static int start_job(duda_request_t *dr, struct pw_job *job)
{
    static const struct duda_task_kind kind = {.fn = pw_job_run,
                                               .done = finish_job,
                                               .drop = free_job,
                                               .queue_ms = DUDA_PASSWORD_WAIT_MS};
    if (task->start(dr, &kind, job))
        return 0;
    int err = errno;
    free_job(job);
    return -err;
}

static int call_then(duda_request_t *dr, struct pw_job *job, int err, duda_password_fn fn, void *data)
{
    if (!job)
        return err;
    job->fn = fn;
    job->data = data;
    return start_job(dr, job);
}

static int hash_then(duda_request_t *dr, const char *text, duda_password_fn fn, void *data)
{
    int err = -EINVAL;
    struct pw_job *job = fn ? make_job(text, NULL, false, &err) : NULL;
    return report_error("password->hash_then()", call_then(dr, job, err, fn, data));
}

static int verify_then(duda_request_t *dr, const char *text, const char *hash, duda_password_fn fn, void *data)
{
    int err = -EINVAL;
    struct pw_job *job = fn ? make_job(text, hash, true, &err) : NULL;
    return report_error("password->verify_then()", call_then(dr, job, err, fn, data));
}

static const struct duda_api_password table = {
    .hash = hash_password,
    .verify = verify_password,
    .hash_then = hash_then,
    .verify_then = verify_then,
    .is_outdated = pw_is_outdated,
};

DUDA_PACKAGE_MAIN_IF(pw_open() == 0, pw_package, "password", "2.0.0", &table)
