// SPDX-License-Identifier: Apache-2.0
/* Level 1: the headers of all packages in one service. It loads the one of its query. */
#include "webservice.h"
#include "packages/base64/base64.h"
#include "packages/json/json.h"
#include "packages/kv/kv.h"
#include "packages/memcached/memcached.h"
#include "packages/redis/redis.h"
#include "packages/sha1/sha1.h"
#include "packages/sha256/sha256.h"
#include "packages/sqlite/sqlite.h"
#include "packages/websocket/websocket.h"

DUDA_REGISTER("Old services", "Packages");

sqlite_db_t *db;
kv_conn_t conn;

void on_message(duda_request_t *dr, ws_request_t *wr)
{
    websocket->write(wr, wr->opcode, wr->payload, wr->payload_len);
    websocket->broadcast(wr, wr->payload, wr->payload_len, WS_OPCODE_TEXT, wr->channel);
    websocket->broadcast_all((unsigned char *)"x", 1, WS_OPCODE_BINARY, -1);
}

void on_reply(redisAsyncContext *c, void *r, void *privdata)
{
    redisReply *reply = r;
    duda_request_t *dr = redis->getDudarequest(c);

    response->cont(dr);
    response->printf(dr, "%s", reply->str);
    response->end(dr, NULL);
}

int on_row(void *data, int n, char **values, char **names)
{
    struct sqlite_cb_data *cb = data;

    response->printf(cb->dr, "%s", values[0]);
    return 0;
}

void cb_all(duda_request_t *dr)
{
    json_t *root = json->create_object(), *item;
    sqlite_handle_t *handle;
    kv_cursor_t *cursor;
    kv_int_t len = 10;
    size_t n;
    unsigned char digest[SHA_DIGEST_LENGTH];
    unsigned char *encoded = base64->encode((unsigned char *)"x", 1, &n);
    redisAsyncContext *rc = redis->connect("127.0.0.1", 6379, dr);

    json->add_to_object(root, "n", json->create_number(1));
    item = json->get_object_item(root, "n");
    response->printf(dr, "%s %i", json->print_gc(dr, root), item->valueint);
    json->delete (root);
    sqlite->exec(dr, db, "SELECT 1", on_row, NULL);
    sqlite->dump(db, "SELECT 1", &handle);
    sqlite_foreach(handle)
    {
        response->printf(dr, "%i", sqlite->get_int(handle, 0));
    }
    sqlite->done(handle);
    kv->store(&conn, "k", -1, "v", 1);
    kv->fetch(&conn, "k", -1, NULL, &len);
    kv->cursor_init(&conn, &cursor);
    KV_CURSOR_FOREACH(cursor)
    {
        kv->cursor_key(cursor, NULL, NULL);
    }
    sha1->encode("x", digest, 1);
    sha256->encode((unsigned char *)"x", digest, 1);
    redis->attach(rc, dr);
    redis->command(rc, on_reply, NULL, "GET %s", "x");
    free(encoded);
}

int duda_main()
{
    duda_load_package(json, "json");
    json->create_object();
    return 0;
}
