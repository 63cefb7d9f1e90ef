// SPDX-License-Identifier: Apache-2.0
/*
 * The package sqlite: the databases of each service, and the table of calls.
 */
#include "sqlite.h"

#include <duda/data.h>
#include <duda/mem.h>

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

enum {
    READERS = 2,
    BUSY_MS = 5000,
    QUERY_MS = 10000,
    ROWS_MAX = 10000,
    WAITING_MAX = 1000,
    BYTES_MAX = 16 << 20,
    BYTES_LIMIT = 1000000000,
};

/* ── settings ── */

char *sq_make_path(const char *path)
{
    assert(path);
    const char *folder = path[0] == '/' ? NULL : data->get_path();
    size_t head = folder ? strlen(folder) : 0, tail = strlen(path) + 1;
    char *joined = mem->alloc(head + tail);
    if (!joined)
        return NULL;
    if (head)
        memcpy(joined, folder, head);
    memcpy(joined + head, path, tail);
    return joined;
}

#define OR(value, otherwise) ((value) ? (value) : (otherwise))

static int read_conf(struct sq_conf *to, const struct duda_sqlite_conf *from, struct sq_error *e)
{
    *to = (struct sq_conf){
        .read_only = from->read_only,
        .readers = OR(from->readers, READERS),
        .busy_ms = OR(from->busy_ms, BUSY_MS),
        .query_ms = OR(from->query_ms, QUERY_MS),
        .rows_max = OR(from->rows_max, ROWS_MAX),
        .waiting_max = OR(from->waiting_max, WAITING_MAX),
        .bytes_max = OR(from->bytes_max, BYTES_MAX),
        .file_bytes_max = from->file_bytes_max,
    };
    size_t len = from->path ? strlen(from->path) : 0;
    if (!len || from->path[0] == ':' || from->path[len - 1] == '/')
        return sq_error_set(e, -EINVAL, "the path is that of no file");
    if (to->readers > SQ_READERS_MAX || to->bytes_max > BYTES_LIMIT)
        return sq_error_set(e, -EINVAL, "%s: readers are 16 at most, and bytes_max 1000000000", from->path);
    if (from->path[0] != '/' && !data->get_path())
        return sq_error_set(e, -EINVAL,
                            "%s: `path` is relative, but the section [WEB_SERVICE] does not set DataDir (dudac sets it "
                            "if the folder `data` exists)",
                            from->path);
    to->path = sq_make_path(from->path);
    if (!to->path)
        return sq_error_set(e, -ENOMEM, "%s: no memory", from->path);
    const char *slash = strrchr(to->path, '/');
    to->name = slash ? slash + 1 : to->path;
    return 0;
}

/* ── databases ── */

static int open_link(duda_sqlite_t *db, struct sq_link *link, bool reads_only, struct sq_error *e)
{
    link->conn.conf = &db->conf;
    link->conn.deadline.busy_ms = mk_time_monotonic_ms() + db->conf.busy_ms;
    link->conn.deadline.end_ms = UINT64_MAX; /* migrations take what they take */
    int err = sq_conn_open(&link->conn, reads_only, e);
    if (err)
        return err;
    link->serial = task->serial_queue();
    if (!link->serial) {
        sq_conn_close(&link->conn);
        return sq_error_set(e, -ENOMEM, "%s: no memory", db->conf.name);
    }
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&link->unused, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&link->lock, NULL);
    assert(db->links_open <= db->conf.readers);
    db->links_open++;
    return 0;
}

static void close_link(struct sq_link *link)
{
    task->serial_queue_free(link->serial);
    sq_conn_close(&link->conn);
    pthread_cond_destroy(&link->unused);
    pthread_mutex_destroy(&link->lock);
}

/* The connection that writes is closed last, which moves what is in the WAL to the file. */
static void close_database(duda_sqlite_t *db)
{
    assert(db->links_open <= 1 + db->conf.readers);
    for (unsigned i = 1; i < db->links_open; i++)
        close_link(&db->readers[i - 1]);
    if (db->links_open)
        close_link(&db->writer);
    pthread_mutex_destroy(&db->log.lock);
    mem->free(db->conf.path);
    mem->free(db);
}

static int open_links(duda_sqlite_t *db, const char *const *migrations, struct sq_error *e)
{
    int err = open_link(db, &db->writer, false, e);
    if (err == 0)
        err = sq_migrate(&db->writer.conn, migrations, e);
    for (unsigned i = 0; i < db->conf.readers && err == 0; i++)
        err = open_link(db, &db->readers[i], true, e);
    for (unsigned i = 0; i < db->conf.readers && err == 0; i++)
        db->readers[i].conn.stopping = task->stopping;
    db->writer.conn.stopping = task->stopping;
    return err;
}

static duda_sqlite_t *make_database(const struct duda_sqlite_conf *from, struct sq_error *e)
{
    struct sq_conf conf;
    if (read_conf(&conf, from, e))
        return NULL;
    duda_sqlite_t *db = mem->alloc_z(sizeof(*db) + conf.readers * sizeof(db->readers[0]));
    if (!db) {
        sq_error_set(e, -ENOMEM, "%s: no memory", conf.name);
        mem->free(conf.path);
        return NULL;
    }
    db->conf = conf;
    pthread_mutex_init(&db->log.lock, NULL);
    if (open_links(db, from->migrations, e) == 0)
        return db;
    close_database(db);
    return NULL;
}

static duda_sqlite_t *refuse_open(const struct sq_error *e)
{
    sq_report(NULL, "open", e);
    errno = -e->err;
    return NULL;
}

static duda_sqlite_t *open_database(const struct duda_sqlite_conf *conf)
{
    struct sq_error e = {.err = 0};
    struct sq_service *service = duda_package_loader->service_state(&sq_package);
    if (!service || !conf || duda_package_loader->worker(&sq_package)) {
        sq_error_set(&e, service && !conf ? -EINVAL : -EPERM,
                     conf ? "it works only in duda_main()" : "the settings are NULL");
        return refuse_open(&e);
    }
    duda_sqlite_t *db = make_database(conf, &e);
    if (!db)
        return refuse_open(&e);
    pthread_mutex_lock(&service->lock);
    db->next = service->first;
    service->first = db;
    pthread_mutex_unlock(&service->lock);
    return db;
}

/* ── services ── */

static void *start_service(void)
{
    struct sq_service *service = mem->alloc_z(sizeof(*service));
    if (service)
        pthread_mutex_init(&service->lock, NULL);
    return service;
}

static void stop_service(void *state)
{
    struct sq_service *service = state;
    while (service->first) {
        duda_sqlite_t *db = service->first;
        service->first = db->next;
        close_database(db);
    }
    sq_old_close_all(service);
    pthread_mutex_destroy(&service->lock);
    mem->free(service);
}

static struct duda_api_sqlite table;

static bool fill_table(void)
{
    table = sq_old_calls;
    table.open = open_database;
    table.query = sq_query;
    table.exec = sq_exec;
    table.transaction = sq_transaction;
    table.query_then = sq_query_then;
    table.exec_then = sq_exec_then;
    table.transaction_then = sq_transaction_then;
    table.error = sq_last_error;
    table.next = sq_rows_next;
    table.count = sq_rows_count;
    table.columns = sq_rows_columns;
    table.column = sq_rows_column;
    table.type = sq_rows_type;
    table.get_int = sq_rows_int;
    table.get_double = sq_rows_double;
    table.get_text = sq_rows_text;
    table.get_bytes = sq_rows_bytes;
    return true;
}

DUDA_PACKAGE_MAIN_IF(fill_table(), sq_package, "sqlite", "2.0.0", &table, .service_start = start_service,
                     .service_stop = stop_service)
