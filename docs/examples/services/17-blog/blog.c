// SPDX-License-Identifier: Apache-2.0
/*
 * blog: posts and comments in a SQLite database, blog.db in DataDir.
 *
 *     GET   /blog/                    the last posts, and a form for a new one
 *     GET   /blog/posts/1             a post with its comments, and a form for a further one
 *     POST  /blog/posts/              title, text
 *     POST  /blog/posts/1/comments    name, text
 *
 * Each request runs in a dthread: while a thread of the pool works on the database, or waits for a lock of another
 * process, the worker serves others. What visitors have typed reaches SQL only as arguments (`?`), and pages only
 * escaped. There is no login: a real blog would have one, and tokens in its forms (see the example session).
 */
#include <duda/duda.h>
#include <duda/packages/sqlite/sqlite.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DUDA_REGISTER("Duda I/O examples", "a blog in a SQLite database");

enum { POSTS_SHOWN = 20, COMMENTS_MAX = 100, BODY_BYTES_MAX = 64 * 1024 };

/* To change the schema of databases that are in use, add a string. */
static const char *const migrations[] = {
    "CREATE TABLE posts(id INTEGER PRIMARY KEY, title TEXT NOT NULL CHECK(length(title) BETWEEN 1 AND 100),"
    "                   text TEXT NOT NULL CHECK(length(text) BETWEEN 1 AND 20000),"
    "                   posted TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)",
    "CREATE TABLE comments(id INTEGER PRIMARY KEY, post INTEGER NOT NULL REFERENCES posts ON DELETE CASCADE,"
    "                      name TEXT NOT NULL CHECK(length(name) BETWEEN 1 AND 50),"
    "                      text TEXT NOT NULL CHECK(length(text) BETWEEN 1 AND 2000));"
    "CREATE INDEX comments_of_posts ON comments(post, id)",
    NULL,
};

static duda_sqlite_t *db;

/* ── pages ── */

static void begin_page(duda_request_t *dr, const char *title)
{
    response->http_content_type(dr, "html");
    response->printf(dr, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>");
    response->print_html(dr, title);
    response->printf(dr, "</title><h1>");
    response->print_html(dr, title);
    response->printf(dr, "</h1>\n");
}

static void print_form(duda_request_t *dr, const char *action, const char *field)
{
    response->printf(dr,
                     "<form method=\"post\" action=\"%s\"><input name=\"%s\" required> "
                     "<textarea name=\"text\" required></textarea> <button>Send</button></form>\n",
                     action, field);
}

/* Sends the status that fits an error of the database. The sentence is for the log, not for visitors. */
static void send_error(duda_request_t *dr, int err)
{
    if (err != -ECONNABORTED && err != -ECANCELED) /* the client has left, or the service ends: `dr` must not be used */
        response->error(dr, err == -ERANGE ? 400 : err == -ENOENT ? 404 : err == -ENOSPC ? 507 : 503);
}

/* Reads the number of the post from the URL. Returns 0 or -ENOENT. */
static int get_id(duda_request_t *dr, long *ret)
{
    return param->get_number(dr, "id", ret) == 0 ? 0 : -ENOENT;
}

/* ── reading ── */

static void list_posts(duda_request_t *dr)
{
    duda_sqlite_rows_t *rows;
    int err = sqlite->query(db, &rows, "SELECT id, title, posted FROM posts ORDER BY id DESC LIMIT ?",
                            DUDA_SQLITE_ARGS(duda_sqlite_int(POSTS_SHOWN)));
    if (err < 0) {
        send_error(dr, err);
        return;
    }
    begin_page(dr, "Blog");
    while (sqlite->next(rows)) {
        response->printf(dr, "<p>%s <a href=\"posts/%lld\">", sqlite->get_text(rows, 2),
                         (long long)sqlite->get_int(rows, 0));
        response->print_html(dr, sqlite->get_text(rows, 1));
        response->printf(dr, "</a></p>\n");
    }
    print_form(dr, "posts/", "title");
    response->end(dr, NULL);
    free(rows);
}

static void print_post(duda_request_t *dr, duda_sqlite_rows_t *post, duda_sqlite_rows_t *comments)
{
    char action[64];
    begin_page(dr, sqlite->get_text(post, 1));
    response->printf(dr, "<p>");
    response->print_html(dr, sqlite->get_text(post, 2));
    response->printf(dr, "</p>\n<h2>%zu comments</h2>\n", sqlite->count(comments));
    while (sqlite->next(comments)) {
        response->printf(dr, "<p><b>");
        response->print_html(dr, sqlite->get_text(comments, 0));
        response->printf(dr, "</b>: ");
        response->print_html(dr, sqlite->get_text(comments, 1));
        response->printf(dr, "</p>\n");
    }
    snprintf(action, sizeof(action), "%lld/comments", (long long)sqlite->get_int(post, 0));
    print_form(dr, action, "name");
    response->end(dr, NULL);
}

static void show_post(duda_request_t *dr)
{
    duda_sqlite_rows_t *post = NULL, *comments = NULL;
    long id = 0;
    int err = get_id(dr, &id);
    if (err == 0)
        err = sqlite->query(db, &post, "SELECT id, title, text FROM posts WHERE id = ?",
                            DUDA_SQLITE_ARGS(duda_sqlite_int(id)));
    if (err == 0 && !sqlite->next(post))
        err = -ENOENT;
    if (err == 0)
        err = sqlite->query(db, &comments, "SELECT name, text FROM comments WHERE post = ? ORDER BY id",
                            DUDA_SQLITE_ARGS(duda_sqlite_int(id)));
    if (err == 0)
        print_post(dr, post, comments);
    else
        send_error(dr, err);
    free(post);
    free(comments);
}

/* ── writing ── */

static void add_post(duda_request_t *dr)
{
    struct duda_sqlite_change change;
    char location[64];
    int err = sqlite->exec(db, &change, "INSERT INTO posts(title, text) VALUES(?, ?)",
                           DUDA_SQLITE_ARGS(duda_sqlite_text(form->get(dr, "title")),
                                            duda_sqlite_text(form->get(dr, "text"))));
    if (err < 0) {
        send_error(dr, err);
        return;
    }
    snprintf(location, sizeof(location), "%lld", (long long)change.last_id);
    response->redirect(dr, 303, location);
}

struct comment {
    int64_t post;
    const char *name, *text;
};

/* In a thread of the pool, as one transaction: no other comment can come between counting and adding. */
static int insert_comment(duda_sqlite_t *in, void *data)
{
    const struct comment *c = data;
    duda_sqlite_rows_t *rows;
    int err =
        sqlite->query(in, &rows, "SELECT (SELECT count(*) FROM comments WHERE post = posts.id) FROM posts WHERE id = ?",
                      DUDA_SQLITE_ARGS(duda_sqlite_int(c->post)));
    if (err < 0)
        return err;
    err = !sqlite->next(rows) ? -ENOENT : sqlite->get_int(rows, 0) >= COMMENTS_MAX ? -ENOSPC : 0;
    free(rows);
    if (err < 0)
        return err;
    return sqlite->exec(in, NULL, "INSERT INTO comments(post, name, text) VALUES(?, ?, ?)",
                        DUDA_SQLITE_ARGS(duda_sqlite_int(c->post), duda_sqlite_text(c->name),
                                         duda_sqlite_text(c->text)));
}

static void add_comment(duda_request_t *dr)
{
    char location[64];
    long id = 0;
    int err = get_id(dr, &id);
    struct comment c = {.post = id, .name = form->get(dr, "name"), .text = form->get(dr, "text")};
    if (err == 0)
        err = sqlite->transaction(db, insert_comment, &c);
    if (err < 0) {
        send_error(dr, err);
        return;
    }
    snprintf(location, sizeof(location), "../%lld", (long long)c.post);
    response->redirect(dr, 303, location);
}

/* ── routes ── */

static void add_routes(void)
{
    router->get("/", list_posts);
    router->post("/posts/", add_post);
    router->get("/posts/:id", show_post);
    router->post("/posts/:id/comments", add_comment);
}

int duda_main(void)
{
    duda_load_package(sqlite, "sqlite");
    db = sqlite->open(&(struct duda_sqlite_conf){.path = "blog.db", .migrations = migrations});
    if (!db) /* the log says why */
        return -1;
    struct duda_route *all = router->group("", add_routes);
    return router->limit(all, BODY_BYTES_MAX) == 0 ? router->in_dthread(all) : -1;
}
