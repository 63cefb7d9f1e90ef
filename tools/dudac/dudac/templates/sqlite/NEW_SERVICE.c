// SPDX-License-Identifier: Apache-2.0
/*
 * NEW_SERVICE: notes by their names, in a SQLite database, data/NEW_SERVICE.db.
 *
 *     GET     /NEW_SERVICE/notes/          the names of all notes, a line each
 *     GET     /NEW_SERVICE/notes/shopping  a note
 *     PUT     /NEW_SERVICE/notes/shopping  writes it
 *     DELETE  /NEW_SERVICE/notes/shopping  removes it
 *
 * Each request runs in a dthread: it waits for the database, while its worker serves others.
 */
#include <duda/duda.h>
#include <duda/packages/sqlite/sqlite.h>

#include <errno.h>
#include <stdlib.h>

DUDA_REGISTER("NEW_SERVICE", "NEW_SERVICE");

enum { NOTES_MAX = 1000, NOTE_BYTES_MAX = 10000 };

/* Add a string to change the schema of databases that are in use: open() runs those that are new. */
static const char *const migrations[] = {
    "CREATE TABLE notes(name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",
    NULL,
};

static duda_sqlite_t *db;

static void end_with(duda_request_t *dr, int status)
{
    response->http_status(dr, status);
    response->end(dr, NULL);
}

/* The log has the sentence of the error. `dr` must not be used when the client has left, or the service ends. */
static void send_error(duda_request_t *dr, int err)
{
    if (err != -ECONNABORTED && err != -ECANCELED)
        response->error(dr, 503);
}

/* ── handlers, in dthreads ── */

static void list_notes(duda_request_t *dr)
{
    duda_sqlite_rows_t *rows;
    int err = sqlite->query(db, &rows, "SELECT name FROM notes ORDER BY name LIMIT ?",
                            DUDA_SQLITE_ARGS(duda_sqlite_int(NOTES_MAX)));
    if (err < 0) {
        send_error(dr, err);
        return;
    }
    response->http_content_type(dr, "txt");
    while (sqlite->next(rows))
        response->printf(dr, "%s\n", sqlite->get_text(rows, 0));
    response->end(dr, NULL);
    free(rows);
}

static void get_note(duda_request_t *dr)
{
    duda_sqlite_rows_t *rows;
    int err = sqlite->query(db, &rows, "SELECT text FROM notes WHERE name = ?",
                            DUDA_SQLITE_ARGS(duda_sqlite_text(param->get(dr, "name"))));
    if (err < 0) {
        send_error(dr, err);
        return;
    }
    if (sqlite->next(rows)) {
        response->http_content_type(dr, "txt");
        response->printf(dr, "%s", sqlite->get_text(rows, 0));
        response->end(dr, NULL);
    } else {
        response->error(dr, 404);
    }
    free(rows);
}

static void put_note(duda_request_t *dr)
{
    size_t len = 0;
    const char *text = request->body(dr, &len);
    int err = sqlite->exec(db, NULL, "INSERT INTO notes VALUES(?, ?) ON CONFLICT DO UPDATE SET text = excluded.text",
                           DUDA_SQLITE_ARGS(duda_sqlite_text(param->get(dr, "name")),
                                            duda_sqlite_text_n(text ? text : "", len)));
    if (err < 0)
        send_error(dr, err);
    else
        end_with(dr, 204);
}

static void delete_note(duda_request_t *dr)
{
    struct duda_sqlite_change change;
    int err = sqlite->exec(db, &change, "DELETE FROM notes WHERE name = ?",
                           DUDA_SQLITE_ARGS(duda_sqlite_text(param->get(dr, "name"))));
    if (err < 0)
        send_error(dr, err);
    else
        end_with(dr, change.rows ? 204 : 404);
}

static void add_routes(void)
{
    const char *note = "/notes/:name";
    router->get("/notes/", list_notes);
    router->get(note, get_note);
    router->put(note, put_note);
    router->delete (note, delete_note);
}

int duda_main(void)
{
    duda_load_package(sqlite, "sqlite");
    db = sqlite->open(&(struct duda_sqlite_conf){.path = "NEW_SERVICE.db", .migrations = migrations});
    if (!db) /* the log says why */
        return -1;
    struct duda_route *all = router->group("", add_routes);
    return router->limit(all, NOTE_BYTES_MAX) == 0 ? router->in_dthread(all) : -1;
}
