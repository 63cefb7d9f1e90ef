// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of the package sqlite: databases of services (databases.c), their calls (calls.c), the calls of the
 * original (old.c).
 */
#ifndef DUDA_PACKAGES_SQLITE_PACKAGE_H
#define DUDA_PACKAGES_SQLITE_PACKAGE_H

#include "conn.h"

#include <duda/task.h>

#include <pthread.h>
#include <stdatomic.h>

enum { SQ_READERS_MAX = 16 };

/* A connection and its tasks, which run one after the other. Threads that are no tasks use it between them. */
struct sq_link {
    struct sq_conn conn;
    pthread_mutex_t lock; /* of `is_used` */
    pthread_cond_t unused;
    bool is_used;
    struct duda_serial_queue *serial;
    _Atomic unsigned waiting; /* tasks that have not ended */
};

struct duda_sqlite {
    struct duda_sqlite *next; /* of the service */
    struct sq_conf conf;
    struct sq_log log;
    unsigned links_open;
    struct sq_link writer;
    struct sq_link readers[];
};

struct sq_service {
    pthread_mutex_t lock; /* of the lists */
    struct duda_sqlite *first;
    struct sqlite_db *first_old;
};

extern struct duda_package sq_package;

/* ── databases.c ── */

/* Returns a path for mem->free(): `path`, or a file in DataDir, if that is set. NULL without memory. */
char *sq_make_path(const char *path);

/* ── calls.c ── */

struct sq_job;

/* Keeps an error for error(), and logs it unless it is of a client's making. `job`: NULL without one. Returns e->err.
 */
int sq_report(const struct sq_job *job, const char *call, const struct sq_error *e);
void sq_clear_error(void);
const char *sq_last_error(void);

int sq_query(duda_sqlite_t *db, duda_sqlite_rows_t **ret, const char *sql, const struct duda_sqlite_value *args,
             size_t n);
int sq_exec(duda_sqlite_t *db, struct duda_sqlite_change *ret, const char *sql, const struct duda_sqlite_value *args,
            size_t n);
int sq_transaction(duda_sqlite_t *db, duda_sqlite_transaction_fn fn, void *data);
int sq_query_then(duda_request_t *dr, duda_sqlite_t *db, const char *sql, const struct duda_sqlite_value *args,
                  size_t n, duda_sqlite_fn fn, void *data);
int sq_exec_then(duda_request_t *dr, duda_sqlite_t *db, const char *sql, const struct duda_sqlite_value *args, size_t n,
                 duda_sqlite_fn fn, void *data);
int sq_transaction_then(duda_request_t *dr, duda_sqlite_t *db, duda_sqlite_transaction_fn work, duda_sqlite_fn fn,
                        void *data);

/* ── old.c ── */

extern const struct duda_api_sqlite sq_old_calls;

/* Frees what a service has left. */
void sq_old_close_all(struct sq_service *service);

#endif
