// SPDX-License-Identifier: Apache-2.0
/*
 * redis: counters of pages, which all servers share that use the same Redis, also after a restart.
 *
 *     curl -X POST http://localhost:2001/redis/pages/home        home: 1
 *     curl http://localhost:2001/redis/pages/home                home: 1
 *     curl http://localhost:2001/redis/                          home: 1, today 1
 *
 * Each handler runs in a dthread, and asks Redis in straight code while its worker serves others. The server is that
 * of the environment variable REDIS_ADDRESS ("name:port" or "unix:/path"), or 127.0.0.1:6379. Without it, clients get
 * 503 with a reason in the log.
 */
#include <duda/duda.h>
#include <duda/packages/redis/redis.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

DUDA_REGISTER("Duda I/O examples", "counters in Redis");

enum { NAME_BYTES = 32, PAGES_SHOWN = 10 };

static duda_redis_t *db;

/* Ends a request whose command has failed. */
static void fail(duda_request_t *dr, int err)
{
    if (err == -ECONNABORTED || err == -ECANCELED) /* the client has left, or the service ends */
        return;
    msg->warn("%s", redis->error(db));
    response->error(dr, 503);
}

/* Returns the name of the page, or NULL after it has answered 404. */
static const char *get_name(duda_request_t *dr)
{
    const char *name = param->get(dr, "name");
    if (strlen(name) <= NAME_BYTES)
        return name;
    response->error(dr, 404);
    return NULL;
}

/* Counts in two places at once: all commands are one step. The count of today ends a day after its begin. */
static void count_page(duda_request_t *dr)
{
    const char *name = get_name(dr);
    const struct duda_redis_arg all[] = {{"ZINCRBY", -1}, {"example:pages", -1}, {"1", -1}, {name, -1}};
    const struct duda_redis_arg first[] = {{"SET", -1}, {"example:today", -1}, {"0", -1},
                                           {"EX", -1},  {"86400", -1},         {"NX", -1}};
    const struct duda_redis_arg today[] = {{"INCR", -1}, {"example:today", -1}};
    struct duda_redis_item items[] = {
        {.args = all, .n_args = 4},
        {.args = first, .n_args = 6},
        {.args = today, .n_args = 2},
    };
    if (!name)
        return;
    int err = redis->ask_all(db, items, 3, true);
    if (err < 0) {
        fail(dr, err);
    } else {
        response->printf(dr, "%s: %s\n", name, items[0].reply->str);
        response->end(dr, NULL);
    }
    for (unsigned i = 0; i < 3; i++)
        free(items[i].reply);
}

static void show_page(duda_request_t *dr)
{
    redisReply *reply;
    const char *name = get_name(dr);
    if (!name)
        return;
    int err = redis->ask(db, &reply, "ZSCORE example:pages %s", name);
    if (err < 0)
        fail(dr, err);
    else if (reply->type == REDIS_REPLY_NIL)
        response->error(dr, 404);
    else if (response->printf(dr, "%s: %s\n", name, reply->str) >= 0)
        response->end(dr, NULL);
    free(reply);
}

/* The pages with the most visits. */
static void show_all(duda_request_t *dr)
{
    redisReply *pages = NULL, *today = NULL;
    int err = redis->ask(db, &pages, "ZREVRANGE example:pages 0 %d WITHSCORES", PAGES_SHOWN - 1);
    err = err < 0 ? err : redis->ask(db, &today, "GET example:today");
    if (err < 0) {
        fail(dr, err);
    } else {
        for (size_t i = 0; i + 1 < pages->elements; i += 2)
            response->printf(dr, "%s: %s, ", pages->element[i]->str, pages->element[i + 1]->str);
        response->printf(dr, "today %s\n", today->str ? today->str : "0");
        response->end(dr, NULL);
    }
    free(pages);
    free(today);
}

static void add_routes(void)
{
    router->get("/", show_all);
    router->get("/pages/:name", show_page);
    router->post("/pages/:name", count_page);
}

int duda_main(void)
{
    duda_load_package(redis, "redis");
    db = redis->open(&(struct duda_redis_conf){.address = getenv("REDIS_ADDRESS")});
    return db ? router->in_dthread(router->group("", add_routes)) : -1;
}
