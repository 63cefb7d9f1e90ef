// SPDX-License-Identifier: Apache-2.0
/*
 * What a call has a connection do.
 */
#ifndef DUDA_PACKAGES_SQLITE_JOB_H
#define DUDA_PACKAGES_SQLITE_JOB_H

#include "sqlite.h"

/* SQ_WRITING_QUERY: a query that has turned out to write, by RETURNING. It runs on the connection that writes. */
enum sq_kind { SQ_QUERY, SQ_WRITING_QUERY, SQ_EXEC, SQ_TRANSACTION };

struct sq_job {
    duda_sqlite_t *db;
    enum sq_kind kind;
    const char *sql;
    const struct duda_sqlite_value *args;
    size_t n;
    duda_sqlite_transaction_fn work;
    void *data; /* of `work`, `fn` */
    duda_sqlite_fn fn;
    const void
        *caller; /* the address in the service that a _then function returns to; NULL: the call has not returned */
    struct sq_deadline deadline;
    struct sq_link *link; /* whose `waiting` counts it; NULL: none */

    struct duda_sqlite_result result; /* `err` is that of `error` or what `work` has returned */
    struct sq_error error;
    bool is_logged; /* the error is what the function of a transaction has returned: its calls have logged theirs */
};

const char *sq_job_name(const struct sq_job *job);
/* Returns a copy for another thread, with that of the SQL and the arguments, or NULL without memory. */
struct sq_job *sq_job_copy(const struct sq_job *job);
/* Frees a copy, with its rows. */
void sq_job_free(void *job);

/*
 * Does it in this thread, with the connection `link`, for which it waits. A query of a connection that reads may become
 * SQ_WRITING_QUERY: then nothing was done, and it must run again.
 */
void sq_job_run(struct sq_job *job, struct sq_link *link);
/* Does it as a part of the transaction that this thread runs in the same database. Returns false: there is none. */
bool sq_job_run_inside(struct sq_job *job);

#endif
