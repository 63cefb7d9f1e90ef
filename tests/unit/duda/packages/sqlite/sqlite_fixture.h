// SPDX-License-Identifier: Apache-2.0
/*
 * What the package sqlite calls, without a server: the heap, whose n-th allocation fails, the log, a folder. And
 * a database of goods.
 */
#ifndef MK_UNIT_DUDA_SQLITE_FIXTURE_H
#define MK_UNIT_DUDA_SQLITE_FIXTURE_H

#include <sqlite3.h>

#include <duda/data.h>
#include <duda/dthread.h>
#include <duda/mem.h>
#include <duda/msg.h>
#include <duda/packages/sqlite/sqlite.h>
#include <duda/task.h>

#include "testing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── what the package calls ── */

static char folder[PATH_MAX], logged[1000];
static void *service;
static bool stopping;

static long countdown = -1; /* of allocations until one fails */

static inline void *alloc(size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static inline void *alloc_zeroed(size_t size)
{
    void *p = alloc(size);
    return p ? memset(p, 0, size) : NULL;
}

static inline void *re_alloc(void *ptr, size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : realloc(ptr, size);
}

static inline void log_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(logged, sizeof(logged), format, args);
    va_end(args);
}

static inline char *get_folder(void)
{
    return folder;
}

static inline void *get_service(const struct duda_package *package)
{
    (void)package;
    return service;
}

static inline struct duda_package_worker *no_worker(const struct duda_package *package)
{
    (void)package;
    return NULL;
}

static inline bool describe_call(const void *address, char *to, size_t size)
{
    snprintf(to, size, "a place");
    return !address; /* the call is on the stack */
}

static inline void log_api_error(const char *call, const char *reason)
{
    log_line("%s: %s", call, reason);
}

static inline void explain_crash(const char *sentence)
{
    (void)sentence;
}

static inline struct duda_serial_queue *make_serial(void)
{
    return malloc(1);
}

static inline void free_serial(struct duda_serial_queue *line)
{
    free(line);
}

static inline bool is_stopping(void)
{
    return stopping;
}

static const struct duda_api_mem heap = {.alloc = alloc, .alloc_z = alloc_zeroed, .realloc = re_alloc, .free = free};
static const struct duda_api_msg lines = {.info = log_line, .warn = log_line, .err = log_line, .bug = log_line};
static const struct duda_api_data files = {.get_path = get_folder};
static const struct duda_api_package loader = {.service_state = get_service,
                                               .worker = no_worker,
                                               .api_error = log_api_error,
                                               .describe_call = describe_call,
                                               .explain_crash = explain_crash};
static const struct duda_api_task tasks = {.serial_queue = make_serial,
                                           .serial_queue_free = free_serial,
                                           .stopping = is_stopping};

static inline int begin(void **state)
{
    char template[] = "/tmp/mk_sqlite_XXXXXX";
    (void)state;
    mem = &heap;
    msg = &lines;
    data = &files;
    task = &tasks;
    duda_package_loader = &loader;
    struct duda_package *package = duda_package_main();
    sqlite = package->api;
    service = package->service_start();
    stopping = false;
    logged[0] = '\0';
    snprintf(folder, sizeof(folder), "%s/", mkdtemp(template));
    return service ? 0 : -1;
}

static inline int end(void **state)
{
    (void)state;
    duda_package_main()->service_stop(service);
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    return rmdir(folder);
}

/* ── helpers ── */

static inline const char *path_of(const char *name)
{
    static char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s%s", folder, name);
    return path;
}

static const char *const goods[] = {
    "CREATE TABLE goods(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, price REAL, picture BLOB);"
    "CREATE TABLE sales(good INTEGER NOT NULL REFERENCES goods)",
    NULL,
};

static inline duda_sqlite_t *open_goods(void)
{
    duda_sqlite_t *db = sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods});
    assert_non_null(db);
    return db;
}

static inline void assert_error(int result, int err, const char *sentence)
{
    const char *error = sqlite->error();
    if (result != err || !error || !strstr(error, sentence))
        fail_msg("%d instead of %d: %s", result, err, error ? error : "no error");
}

static inline int64_t get_number(duda_sqlite_t *db, const char *sql)
{
    duda_sqlite_rows_t *rows;
    assert_int_equal(sqlite->query(db, &rows, sql, DUDA_SQLITE_NO_ARGS), 0);
    assert_true(sqlite->next(rows));
    int64_t number = sqlite->get_int(rows, 0);
    free(rows);
    return number;
}

static inline int insert(duda_sqlite_t *db, const char *name)
{
    return sqlite->exec(db, NULL, "INSERT INTO goods(name) VALUES(?)", DUDA_SQLITE_ARGS(duda_sqlite_text(name)));
}

static inline int sell(duda_sqlite_t *db, void *given)
{
    int64_t *id = given;
    duda_sqlite_rows_t *rows;
    const char *sql = "INSERT INTO goods(name) VALUES('a') RETURNING id";
    if (sqlite->query(db, &rows, sql, DUDA_SQLITE_NO_ARGS) < 0)
        return -EIO;
    sqlite->next(rows);
    *id = sqlite->get_int(rows, 0);
    free(rows);
    if (sqlite->exec(db, NULL, "INSERT INTO sales VALUES(?)", DUDA_SQLITE_ARGS(duda_sqlite_int(*id))) < 0)
        return -EIO;
    return 3;
}

static inline void refuse(const struct duda_sqlite_conf *conf, int err, const char *sentence)
{
    errno = 0;
    assert_null(sqlite->open(conf));
    assert_error(-errno, err, sentence);
    assert_true(strstr(logged, "sqlite->open(): ") && strstr(logged, sentence));
}

#endif
