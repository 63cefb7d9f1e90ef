// SPDX-License-Identifier: Apache-2.0
/* Summer of 2012: contexts of redis belong to no request until attach(), and replies come behind the response. */
#include "webservice.h"
#include "packages/redis/redis.h"

DUDA_REGISTER("Old services", "Tally");

int ended;

void on_connect(const redisAsyncContext *rc, int status)
{
    msg->info("connected %d", status);
}

void on_disconnect(const redisAsyncContext *rc, int status)
{
    msg->info("disconnected %d", status);
}

void on_count(redisAsyncContext *rc, void *r, void *privdata)
{
    redisReply *reply = r;

    if (reply)
        msg->info("%s %lld, %s request, %d ended", (char *)privdata, reply->integer,
                  redis->getDudarequest(rc) ? "a" : "no", ended);
    redis->disconnect(rc);
}

void cb_end(duda_request_t *dr)
{
    ended++;
}

void cb_count(duda_request_t *dr)
{
    redisAsyncContext *rc;
    long port;

    response->http_status(dr, 200);
    response->http_header(dr, "Content-Type: text/plain", 24);
    param->get_number(dr, 0, &port);
    rc = redis->connect("127.0.0.1", port);
    redis->attach(rc, dr);
    redis->setConnectCallback(rc, on_connect);
    redis->setDisconnectCallback(rc, on_disconnect);
    redis->command(rc, on_count, "tally", "INCR tally");
    response->body_print(dr, "counted\n", 8);
    response->end(dr, cb_end);
}

/* connect() of the C library has three arguments. */
int try_connect(struct sockaddr *address, socklen_t len)
{
    return connect(-1, address, len);
}

int duda_main(struct duda_api_objects *api)
{
    duda_interface_t *tally;
    duda_method_t *method;
    duda_param_t *port;
    struct sockaddr none = {0};

    duda_service_init();

    session->init();
    duda_load_package(redis, "redis");
    if (try_connect(&none, sizeof(none)) != -1)
        return -1;

    tally = map->interface_new("tally");
    method = map->method_new("count", "cb_count", 1);
    port = map->param_new("port", 5);
    map->method_add_param(port, method);
    map->interface_add_method(method, tally);
    duda_service_add_interface(tally);

    duda_service_ready();
}
