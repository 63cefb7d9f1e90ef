// SPDX-License-Identifier: Apache-2.0
/* A web service that reads a row of a SQLite database for each request: GET /notes/500. In DataDir. */
#include <duda/duda.h>
#include <duda/packages/sqlite/sqlite.h>

#include <errno.h>
#include <stdlib.h>

DUDA_REGISTER("wr", "notes");

static const char *const migrations[] = {
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000)"
    "  INSERT INTO notes SELECT i, printf('note %d: %.*c', i, 80, 'x') || char(10) FROM n",
    NULL,
};

static duda_sqlite_t *db;

static void send_note(duda_request_t *dr, duda_sqlite_rows_t *rows)
{
    size_t len;
    const char *text = sqlite->next(rows) ? sqlite->get_bytes(rows, 0, &len) : NULL;
    if (text) {
        response->write(dr, text, len);
        response->end(dr, NULL);
    } else {
        response->error(dr, 404);
    }
    free(rows);
}

static void read_note(duda_request_t *dr, void *data)
{
    duda_sqlite_rows_t *rows;
    long id;
    (void)data;
    int err = param->get_number(dr, "id", &id);
    if (err < 0) {
        response->error(dr, 404);
        return;
    }
    err = sqlite->query(db, &rows, "SELECT text FROM notes WHERE id = ?", DUDA_SQLITE_ARGS(duda_sqlite_int(id)));
    if (err == 0)
        send_note(dr, rows);
    else if (err != -ECONNABORTED && err != -ECANCELED)
        response->error(dr, 503);
}

static void handle(duda_request_t *dr)
{
    if (!dthread->handle(dr, read_note, NULL))
        response->error(dr, 503);
}

int duda_main(void)
{
    duda_load_package(sqlite, "sqlite");
    db = sqlite->open(&(struct duda_sqlite_conf){.path = "notes.db", .migrations = migrations});
    return db && router->get("/:id", handle) ? 0 : -1;
}
