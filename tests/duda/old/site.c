// SPDX-License-Identifier: Apache-2.0
/* Level 1: a site that is the root of its host: articles by their names, of a database and files. */
#include "webservice.h"
#include "packages/sqlite/sqlite.h"

DUDA_REGISTER("Old services", "Site");

#define STATIC_URI "/static/"

sqlite_db_t *db;
char *header;

static int create_table(void)
{
    sqlite_handle_t *handle;

    sqlite->dump(db, "CREATE TABLE posts (id INTEGER PRIMARY KEY ASC, creation INTEGER, slug TEXT);", &handle);
    sqlite->step(handle);
    return sqlite->done(handle);
}

static void send_article(duda_request_t *dr, char *path)
{
    response->http_content_type(dr, "html");
    response->sendfile(dr, header);
    response->http_status(dr, access(path, R_OK) == 0 ? 200 : 404);
    if (response->sendfile(dr, path) != 0)
        response->printf(dr, "no article");
    response->end(dr, NULL);
}

/* The name is behind the slash. */
void cb_article(duda_request_t *dr)
{
    char *path = NULL;
    unsigned long len;
    char *name = monkey->str_copy_substr(dr->sr->uri_processed.data, 1, dr->sr->uri_processed.len);

    monkey->str_build(&path, &len, "%s/posts/%s.md", data->get_path(), name);
    monkey->mem_free(name);
    gc->add(dr, path);
    return send_article(dr, path);
}

void cb_list(duda_request_t *dr)
{
    time_t creation;
    char *date = mem->alloc(80);
    struct tm *tm = mem->alloc(sizeof(struct tm));
    sqlite_handle_t *handle = NULL;

    gc->add(dr, date);
    gc->add(dr, tm);
    sqlite->exec(dr, db, "INSERT INTO posts (creation, slug) VALUES (86400, 'one')", NULL, NULL);
    sqlite->dump(db, "SELECT creation, slug FROM posts ORDER BY id desc", &handle);
    SQLITE_FOREACH(handle)
    {
        creation = sqlite->get_int(handle, 0);
        gmtime_r(&creation, tm);
        strftime(date, 80, "%B %d, %Y", tm);
        response->printf(dr, "%s: %s\n", date, (char *)sqlite->get_text(handle, 1));
    }
    sqlite->done(handle);
    response->http_status(dr, 200);
    response->end(dr, NULL);
}

/* Files of the document root, because all other paths are articles. */
void cb_static(duda_request_t *dr)
{
    int begin = sizeof(STATIC_URI) - 1;
    char *path = mem->alloc_z(MK_MAX_PATH);

    snprintf(path, self->docroot.len + 1 + dr->sr->uri_processed.len - begin, "%s%s", self->docroot.data,
             dr->sr->uri_processed.data + begin);
    gc->add(dr, path);
    response->http_status(dr, 200);
    response->sendfile(dr, path);
    response->end(dr, NULL);
}

void cb_home(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->http_content_type(dr, "html");
    response->sendfile(dr, header);
    response->end(dr, NULL);
}

int duda_main()
{
    char path[MK_MAX_PATH];
    struct file_info info;

    duda_load_package(sqlite, "sqlite");
    header = mem->alloc(MK_MAX_PATH);
    snprintf(header, MK_MAX_PATH, "%s/header.html", data->get_path());
    snprintf(path, MK_MAX_PATH, "%s/%s", data->get_path(), "site.db");
    if (monkey->file_get_info(path, &info) == 0)
        return MK_ERROR;
    db = sqlite->open(path);
    create_table();
    conf->service_root();
    map->static_add("/page/", "cb_list");
    map->static_add(STATIC_URI, "cb_static");
    map->static_add("/", "cb_article");
    map->static_root("cb_home");
    return 0;
}

void duda_exit()
{
    sqlite->close(db);
    mem->free(header);
}
