// SPDX-License-Identifier: Apache-2.0
/*
 * The package sqlite: the calls of the original, which work in the calling thread.
 */
#include "sqlite.h"

#include <duda/mem.h>
#include <duda/msg.h>

#include <string.h>

enum { OLD_BUSY_MS = 500 };

struct sqlite_handle {
    struct sqlite_handle *next;
    struct sqlite_db *db;
    sqlite3_stmt *stmt;
};

struct sqlite_db {
    struct sqlite_db *next; /* of the service */
    sqlite3 *db;
    pthread_mutex_t lock; /* of the list */
    struct sqlite_handle *first;
};

static int log_failure(const char *call, sqlite3 *db, int code)
{
    msg->warn("sqlite->%s(): %s", call, db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
    return -1;
}

/* ── databases ── */

static struct sq_service *find_service(void)
{
    return duda_package_loader->service_state(&sq_package);
}

static void close_database(struct sqlite_db *db)
{
    while (db->first) {
        struct sqlite_handle *handle = db->first;
        db->first = handle->next;
        sqlite3_finalize(handle->stmt);
        mem->free(handle);
    }
    sqlite3_close(db->db);
    pthread_mutex_destroy(&db->lock);
    mem->free(db);
}

/* Returns a result code. */
static int open_file(const char *path, sqlite3 **ret)
{
    char *file = sq_make_path(path);
    int how = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    int code = file ? sqlite3_open_v2(file, ret, how, NULL) : SQLITE_NOMEM;
    mem->free(file);
    if (code != SQLITE_OK)
        return code;
    sqlite3_busy_timeout(*ret, OLD_BUSY_MS);
    return sqlite3_exec(*ret, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
}

static sqlite_db_t *open_database(const char *path)
{
    struct sq_service *service = find_service();
    sqlite_db_t *db = service && path ? mem->alloc_z(sizeof(*db)) : NULL;
    int code = db ? open_file(path, &db->db) : path ? SQLITE_NOMEM : SQLITE_MISUSE;
    if (code != SQLITE_OK) {
        msg->warn("sqlite->open(): %s: %s", path ? path : "NULL",
                  db && db->db ? sqlite3_errmsg(db->db) : sqlite3_errstr(code));
        if (db)
            sqlite3_close(db->db);
        mem->free(db);
        return NULL;
    }
    pthread_mutex_init(&db->lock, NULL);
    pthread_mutex_lock(&service->lock);
    db->next = service->first_old;
    service->first_old = db;
    pthread_mutex_unlock(&service->lock);
    return db;
}

static int close_call(sqlite_db_t *db)
{
    struct sq_service *service = find_service();
    if (!service || !db)
        return 0;
    pthread_mutex_lock(&service->lock);
    struct sqlite_db **link = &service->first_old;
    while (*link && *link != db)
        link = &(*link)->next;
    bool found = *link;
    if (found)
        *link = db->next;
    pthread_mutex_unlock(&service->lock);
    if (found)
        close_database(db);
    return 0;
}

void sq_old_close_all(struct sq_service *service)
{
    while (service->first_old) {
        struct sqlite_db *db = service->first_old;
        service->first_old = db->next;
        close_database(db);
    }
}

/* ── queries ── */

static int dump_query(sqlite_db_t *db, const char *sql, sqlite_handle_t **ret)
{
    if (!db || !sql || !ret)
        return log_failure("dump", NULL, SQLITE_MISUSE);
    *ret = NULL;
    sqlite_handle_t *handle = mem->alloc_z(sizeof(*handle));
    if (!handle)
        return log_failure("dump", NULL, SQLITE_NOMEM);
    int code = sqlite3_prepare_v2(db->db, sql, -1, &handle->stmt, NULL);
    if (code != SQLITE_OK) {
        mem->free(handle);
        return log_failure("dump", db->db, code);
    }
    handle->db = db;
    pthread_mutex_lock(&db->lock);
    handle->next = db->first;
    db->first = handle;
    pthread_mutex_unlock(&db->lock);
    *ret = handle;
    return 0;
}

static int step_handle(sqlite_handle_t *handle)
{
    if (!handle)
        return log_failure("step", NULL, SQLITE_MISUSE);
    int code = sqlite3_step(handle->stmt);
    if (code == SQLITE_ROW)
        return SQLITE_ROW;
    return code == SQLITE_DONE ? 0 : log_failure("step", handle->db->db, code);
}

static int get_int(sqlite_handle_t *handle, int column)
{
    return handle ? sqlite3_column_int(handle->stmt, column) : 0;
}

static double get_double(sqlite_handle_t *handle, int column)
{
    return handle ? sqlite3_column_double(handle->stmt, column) : 0;
}

static const unsigned char *get_text(sqlite_handle_t *handle, int column)
{
    return handle ? sqlite3_column_text(handle->stmt, column) : NULL;
}

static int close_handle(sqlite_handle_t *handle)
{
    if (!handle)
        return 0;
    struct sqlite_db *db = handle->db;
    pthread_mutex_lock(&db->lock);
    struct sqlite_handle **link = &db->first;
    while (*link && *link != handle)
        link = &(*link)->next;
    if (*link)
        *link = handle->next;
    pthread_mutex_unlock(&db->lock);
    sqlite3_finalize(handle->stmt);
    mem->free(handle);
    return 0;
}

static int exec_query(duda_request_t *dr, sqlite_db_t *db, const char *sql,
                      int (*fn)(void *cb_data, int n, char **values, char **names), void *data)
{
    struct sqlite_cb_data given = {.dr = dr, .data = data};
    if (!db || !sql)
        return log_failure("exec", NULL, SQLITE_MISUSE);
    int code = sqlite3_exec(db->db, sql, fn, &given, NULL);
    return code == SQLITE_OK || code == SQLITE_ABORT ? 0 : log_failure("exec", db->db, code);
}

const struct duda_api_sqlite sq_old_calls = {
    .old_open = open_database,
    .old_dump = dump_query,
    .old_exec = exec_query,
    .old_step = step_handle,
    .old_get_int = get_int,
    .old_get_double = get_double,
    .old_get_text = get_text,
    .old_done = close_handle,
    .old_close = close_call,
};
