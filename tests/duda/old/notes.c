// SPDX-License-Identifier: Apache-2.0
/* Level 1, as services of 2013 and 2014 used kv: the connection is a pointer, and results have the names of 2013. */
#include "webservice.h"
#include "packages/kv/kv.h"

DUDA_REGISTER("Old services", "Notes");

kv_conn_t *notes;
kv_conn_t *other;

/* Returns a new path, or NULL. Values were stored without a NUL, and are used as strings. */
static char *find(char *name)
{
    char *path = memset(monkey->mem_alloc(MAX_PATH), 'x', MAX_PATH);
    unqlite_int64 len = MAX_PATH;

    if (kv->fetch(notes, name, -1, path, &len) != UNQLITE_OK) {
        monkey->mem_free(path);
        return NULL;
    }
    return path;
}

void cb_notes(duda_request_t *dr)
{
    char *name = qs->get(dr, "name");
    char *path = find(name);
    unsigned long len;
    unqlite_int64 size;

    response->http_status(dr, 200);
    if (path) {
        response->printf(dr, "known %s %d", path, kv->delete (notes, name, -1) == KV_OK);
    } else {
        monkey->str_build(&path, &len, "/notes/%s.md", name);
        response->printf(dr, "new %d %d", kv->store(notes, name, -1, path, len) == KV_OK,
                         kv->fetch(other, name, -1, NULL, &size) == KV_NOTFOUND);
    }
    gc->add(dr, path);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_load_package(kv, "kv");
    kv->init(&notes);
    kv->init(&other);
    map->static_root("cb_notes");
    return 0;
}
