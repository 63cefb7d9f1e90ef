// SPDX-License-Identifier: Apache-2.0
/*
 * S4: a web service that asks Redis for each request, in a dthread. GET /value/ answers with the key "value" of the
 * server that redis.conf of its ConfDir names.
 */
#include <duda/duda.h>
#include <duda/packages/redis/redis.h>

#include <errno.h>
#include <stdlib.h>

DUDA_REGISTER("wr", "a value of Redis");

static duda_redis_t *db;

static void answer(duda_request_t *dr, void *data)
{
    redisReply *reply;
    (void)data;
    int err = redis->ask_args(db, &reply, DUDA_REDIS_ARGS({"GET", 3}, {"value", 5}));
    if (!dr || (err < 0 && (err == -ECONNABORTED || err == -ECANCELED)))
        return;
    if (err < 0 || !reply->str) {
        response->error(dr, 503);
        free(reply);
        return;
    }
    response->print_ref(dr, reply->str, (size_t)reply->len);
    gc->add(dr, reply);
    response->end(dr, NULL);
}

static void handle(duda_request_t *dr)
{
    if (!dthread->handle(dr, answer, NULL))
        response->error(dr, 503);
}

int duda_main(void)
{
    struct duda_config *c = fconf->read_conf("redis.conf");
    struct duda_config_section *section = c ? fconf->section_get(c, "REDIS") : NULL;
    duda_load_package(redis, "redis");
    if (section)
        db = redis->open(&(struct duda_redis_conf){.address = fconf->get_string(section, "Address", NULL)});
    fconf->free_conf(c);
    return db && router->get("/", handle) ? 0 : -1;
}
