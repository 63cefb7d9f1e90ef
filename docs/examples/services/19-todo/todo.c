// SPDX-License-Identifier: Apache-2.0
/*
 * todo: to-dos of users who log in, in a SQLite database; open pages follow changes live.
 *
 *     POST          /todo/api/users       {"name", "password"}: registers a user, and logs in
 *     POST          /todo/api/login       {"name", "password"}; the end is /todo/api/logout
 *     GET           /todo/api/me          {"name", "csrf_token"} of the user who is logged in
 *     GET, POST     /todo/api/todos       all to-dos of the user; a new one: {"text"}
 *     PUT, DELETE   /todo/api/todos/1     {"text", "done"}
 *     GET           /todo/api/events      changes as server-sent events, for the page html/index.html
 *     GET           /todo/api/socket      changes by a WebSocket, for programs
 *
 * Bodies are JSON, also those of errors: {"error": "there is no such thing"}. What needs a login and changes something
 * needs the header X-CSRF-Token, too. Requests run in dthreads, in which SQLite and passwords are straight code.
 */
#include <duda/duda.h>
#include <duda/packages/json/json.h>
#include <duda/packages/password/password.h>
#include <duda/packages/sqlite/sqlite.h>
#include <duda/packages/websocket/websocket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DUDA_REGISTER("Duda I/O examples", "to-dos");

enum { BODY_BYTES_MAX = 4096, MESSAGE_BYTES = 4096, PASSWORD_BYTES_MIN = 8, FILE_BYTES_MAX = 1 << 30 };

/* To change the schema of databases that are in use, add a string. */
static const char *const migrations[] = {
    "CREATE TABLE users(id INTEGER PRIMARY KEY, hash TEXT NOT NULL,"
    "                   name TEXT NOT NULL UNIQUE COLLATE NOCASE CHECK(length(name) BETWEEN 1 AND 50));"
    "CREATE TABLE todos(id INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,"
    "                   text TEXT NOT NULL CHECK(length(text) BETWEEN 1 AND 500), done_at TEXT);"
    "CREATE INDEX todos_of_users ON todos(user, id);"
    "CREATE INDEX todos_done ON todos(done_at)",
    NULL,
};

/* A to-do as JSON, which SQLite writes. */
#define AS_JSON \
    "json_object('id', id, 'text', text, 'done', json(CASE WHEN done_at IS NULL THEN 'false' ELSE 'true' END))"

static duda_sqlite_t *db;
static ws_endpoint_t *sockets;

/* ── responses ── */

/* What functions return, and what clients get. The framework finds those with 0; the last row is for all others. */
static const struct {
    int err, status;
    const char *text;
} errors[] = {
    {-ERANGE, 400, "the body is not JSON, or a value is missing, too short or too long"},
    {-EMSGSIZE, 400, "the password is too long"},
    {-EACCES, 401, "log in with your name and password"},
    {-EPERM, 403, "the header X-CSRF-Token is missing or wrong: load the page again"},
    {-ENOENT, 404, "there is no such thing"},
    {0, 405, "this method is not for this path"},
    {-EEXIST, 409, "the name is taken"},
    {0, 413, "the body is too long"},
    {-ENOTSUP, 415, "the body must have the type application/json"},
    {-ENOSPC, 507, "there is no room for more"},
    {0, 503, "try again later"},
};

static void send_json(duda_request_t *dr, const char *text)
{
    response->http_content_type(dr, "json");
    response->printf(dr, "%s\n", text);
    response->end(dr, NULL);
}

static void describe_error(duda_request_t *dr, int status)
{
    char text[128];
    int row = 0;
    while (errors[row].status != 503 && errors[row].status != status)
        row++;
    snprintf(text, sizeof(text), "{\"error\": \"%s\"}", errors[row].text);
    send_json(dr, text);
}

static void send_error(duda_request_t *dr, int err)
{
    int row = 0;
    while (errors[row].status != 503 && errors[row].err != err)
        row++;
    if (err == -EACCES) /* 401 names a scheme (RFC 9110 section 15.5.2); browsers do not know this one */
        response->header(dr, "WWW-Authenticate", "Session realm=\"todo\"");
    if (err != -ECONNABORTED && err != -ECANCELED) /* the client has left, or the service ends: `dr` must not be used */
        response->error(dr, errors[row].status);
}

/* ── before the handlers ── */

static int open_session(duda_request_t *dr)
{
    int err = session->open(dr, NULL, NULL);
    if (err < 0)
        send_error(dr, err);
    return err;
}

static int check_login(duda_request_t *dr)
{
    bool reads = request->is_get(dr) || request->is_head(dr);
    int err = !session->get(dr, "user", NULL) ? -EACCES : !reads && session->csrf_check(dr) < 0 ? -EPERM : 0;
    if (err < 0)
        send_error(dr, err);
    return err;
}

/* Forms of other sites cannot send this type, so that a login needs no token. Returns NULL: it has sent an error. */
static json_t *read_body(duda_request_t *dr)
{
    bool is_json = request->is_content_type(dr, "application/json");
    json_t *body = is_json ? json->parse_data(dr) : NULL;
    if (!body)
        send_error(dr, is_json ? -ERANGE : -ENOTSUP);
    return body;
}

/* ── users ── */

static void send_user(duda_request_t *dr)
{
    json_t *user = json->create_object();
    json->add_to_object(user, "name", json->create_string(session->get(dr, "name", NULL)));
    json->add_to_object(user, "csrf_token", json->create_string(session->csrf_token(dr)));
    response->http_header(dr, "Cache-Control: no-store");
    json->send(dr, user);
    json->delete (user);
}

/* The session gets a new id: one that others have seen or planted is not logged in. */
static void begin_session(duda_request_t *dr, int64_t id, const char *name)
{
    char user[24];
    snprintf(user, sizeof(user), "%lld", (long long)id);
    if (session->renew(dr) < 0 || session->set(dr, "user", user, -1) < 0 || session->set(dr, "name", name, -1) < 0 ||
        session->save(dr, NULL, NULL) < 0)
        response->error(dr, 503);
    else
        send_user(dr);
}

static void add_user(duda_request_t *dr)
{
    char hash[DUDA_PASSWORD_HASH_BYTES];
    struct duda_sqlite_change change;
    json_t *body = read_body(dr);
    if (!body)
        return;
    const char *name = json->get_string(body, "name"), *secret = json->get_string(body, "password");
    response->http_status(dr, 201); /* unless an error follows */
    int err = secret && strlen(secret) >= PASSWORD_BYTES_MIN ? password->hash(secret, hash) : -ERANGE;
    if (err == 0)
        err = sqlite->exec(db, &change, "INSERT INTO users(name, hash) VALUES(?, ?)",
                           DUDA_SQLITE_ARGS(duda_sqlite_text(name), duda_sqlite_text(hash)));
    if (err == 0)
        begin_session(dr, change.last_id, name);
    else
        send_error(dr, err);
    json->delete (body);
}

static void log_in(duda_request_t *dr)
{
    duda_sqlite_rows_t *user;
    json_t *body = read_body(dr);
    if (!body)
        return;
    const char *name = json->get_string(body, "name"), *secret = json->get_string(body, "password");
    int err = sqlite->query(db, &user, "SELECT id, name, hash FROM users WHERE name = ?",
                            DUDA_SQLITE_ARGS(duda_sqlite_text(name)));
    sqlite->next(user);
    if (err == 0) /* without such a user, too: the time does not tell whether there is one */
        err = password->verify(secret ? secret : "", sqlite->get_text(user, 2));
    if (err == 0)
        begin_session(dr, sqlite->get_int(user, 0), sqlite->get_text(user, 1));
    else
        send_error(dr, err);
    json->delete (body);
    free(user);
}

static void log_out(duda_request_t *dr)
{
    session->destroy(dr);
    response->http_status(dr, session->save(dr, NULL, NULL) == 0 ? 204 : 503);
    response->end(dr, NULL);
}

/* ── live ── */

static void follow_events(duda_request_t *dr)
{
    response->sse_begin(dr, 15);
    sse->subscribe(dr, session->get(dr, "user", NULL));
}

/* Pages of other sites cannot connect: without `.origins`, Origin must be the host of the request. */
static void follow_socket(duda_request_t *dr)
{
    ws_request_t *socket = websocket->accept(dr, sockets, WS_CHANNEL_ALL, NULL);
    if (socket)
        websocket->join(socket, session->get(dr, "user", NULL));
}

/* Sends {"event": "added", "todo": {...}} to the channels of a user, whose name is the number of the user. */
static void publish(const char *user, const char *event, const char *todo)
{
    char text[MESSAGE_BYTES];
    int len = snprintf(text, sizeof(text), "{\"event\": \"%s\", \"todo\": %s}", event, todo);
    sse->publish(user, NULL, NULL, "%s", text);
    websocket->publish_to(user, WS_OPCODE_TEXT, text, (size_t)len, NULL);
}

/* ── to-dos ── */

static struct duda_sqlite_value get_user(duda_request_t *dr)
{
    return duda_sqlite_text(session->get(dr, "user", NULL));
}

/* Runs a statement that returns the to-do it has changed, and sends that; `missing` is the error if there is none. */
static void write_todo(duda_request_t *dr, const char *event, int missing, const char *sql,
                       const struct duda_sqlite_value *args, size_t n)
{
    duda_sqlite_rows_t *rows;
    int err = sqlite->query(db, &rows, sql, args, n);
    if (err == 0 && !sqlite->next(rows))
        err = missing;
    if (err == 0) {
        publish(session->get(dr, "user", NULL), event, sqlite->get_text(rows, 0));
        send_json(dr, sqlite->get_text(rows, 0));
    } else
        send_error(dr, err);
    free(rows);
}

static void list_todos(duda_request_t *dr)
{
    duda_sqlite_rows_t *rows;
    int err = sqlite->query(db, &rows,
                            "SELECT json_group_array(json(todo)) FROM"
                            " (SELECT " AS_JSON " AS todo FROM todos WHERE user = ? ORDER BY id)",
                            DUDA_SQLITE_ARGS(get_user(dr)));
    if (err == 0 && sqlite->next(rows))
        send_json(dr, sqlite->get_text(rows, 0));
    else
        send_error(dr, err);
    free(rows);
}

static void add_todo(duda_request_t *dr)
{
    json_t *body = read_body(dr);
    if (!body)
        return;
    response->http_status(dr, 201);
    write_todo(dr, "added", -ENOSPC,
               "INSERT INTO todos(user, text) SELECT ?1, ?2"
               " WHERE (SELECT count(*) FROM todos WHERE user = ?1) < 1000 RETURNING " AS_JSON,
               DUDA_SQLITE_ARGS(get_user(dr), duda_sqlite_text(json->get_string(body, "text"))));
    json->delete (body);
}

static void change_todo(duda_request_t *dr)
{
    bool done;
    json_t *body = read_body(dr);
    if (!body)
        return;
    if (json->get_bool(body, "done", &done) < 0)
        send_error(dr, -ERANGE);
    else
        write_todo(dr, "changed", -ENOENT,
                   "UPDATE todos SET text = ?, done_at = CASE WHEN ? THEN coalesce(done_at, datetime('now')) END"
                   " WHERE id = ? AND user = ? RETURNING " AS_JSON,
                   DUDA_SQLITE_ARGS(duda_sqlite_text(json->get_string(body, "text")), duda_sqlite_int(done),
                                    duda_sqlite_text(param->get(dr, "id")), get_user(dr)));
    json->delete (body);
}

static void remove_todo(duda_request_t *dr)
{
    write_todo(dr, "removed", -ENOENT, "DELETE FROM todos WHERE id = ? AND user = ? RETURNING " AS_JSON,
               DUDA_SQLITE_ARGS(duda_sqlite_text(param->get(dr, "id")), get_user(dr)));
}

/* Each hour, in one worker: removes what was done a week ago. What is above the LIMIT is for the next hour. */
static void remove_old(void *data)
{
    duda_sqlite_rows_t *rows;
    (void)data;
    sqlite->query(db, &rows,
                  "DELETE FROM todos WHERE id IN (SELECT id FROM todos WHERE done_at < datetime('now', '-7 days')"
                  " LIMIT 1000) RETURNING " AS_JSON ", CAST(user AS TEXT)",
                  DUDA_SQLITE_NO_ARGS);
    while (sqlite->next(rows)) /* NULL after an error, which is logged */
        publish(sqlite->get_text(rows, 1), "removed", sqlite->get_text(rows, 0));
    free(rows);
}

/* ── routes ── */

static void add_private(void)
{
    router->get("/me", send_user);
    router->post("/logout", log_out);
    router->get("/todos", list_todos);
    router->post("/todos", add_todo);
    router->put("/todos/:id", change_todo);
    router->delete ("/todos/:id", remove_todo);
    router->get("/events", follow_events);
    router->get("/socket", follow_socket);
}

static void add_api(void)
{
    router->post("/users", add_user);
    router->post("/login", log_in);
    router->before(router->group("", add_private), check_login);
}

int duda_main(void)
{
    duda_load_package(json, "json");
    duda_load_package(password, "password");
    duda_load_package(sqlite, "sqlite");
    duda_load_package(websocket, "websocket");
    db = sqlite->open(
        &(struct duda_sqlite_conf){.path = "todo.db", .migrations = migrations, .file_bytes_max = FILE_BYTES_MAX});
    sockets = websocket->endpoint(&(struct ws_settings){.message_bytes_max = 128}); /* clients send nothing */
    if (!db || !sockets || session->init(NULL) < 0 || event->every(3600 * 1000, remove_old, NULL) < 0)
        return -1; /* the log says why */
    struct duda_route *api = router->group("/api", add_api);
    router->error(describe_error);
    router->before(api, open_session);
    router->limit(api, BODY_BYTES_MAX);
    return router->in_dthread(api); /* 0, or the group could not be made */
}
