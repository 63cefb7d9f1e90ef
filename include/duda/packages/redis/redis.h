// SPDX-License-Identifier: Apache-2.0
/*
 * The package redis. Types are declared as the client library hiredis has them, whose header a service may include
 * before this one.
 */
#ifndef DUDA_PACKAGES_REDIS_H
#define DUDA_PACKAGES_REDIS_H

#include "../../package.h"

#ifndef REDIS_OK
#define REDIS_ERR -1
#define REDIS_OK 0
#endif

#ifndef REDIS_REPLY_STRING
#define REDIS_REPLY_STRING 1
#define REDIS_REPLY_ARRAY 2
#define REDIS_REPLY_INTEGER 3
#define REDIS_REPLY_NIL 4
#define REDIS_REPLY_STATUS 5
#define REDIS_REPLY_ERROR 6

typedef struct redisReply {
    int type;
    long long integer;
    double dval;
    size_t len;
    char *str;
    char vtype[4];
    size_t elements;
    struct redisReply **element;
} redisReply;
#endif

#ifndef __HIREDIS_ASYNC_H
typedef struct redisAsyncContext redisAsyncContext;
typedef void(redisCallbackFn)(struct redisAsyncContext *ctx, void *reply, void *data);
typedef void(redisConnectCallback)(const struct redisAsyncContext *ctx, int status);
typedef void(redisDisconnectCallback)(const struct redisAsyncContext *ctx, int status);
#endif

struct duda_api_redis {
    redisAsyncContext *(*connect)(const char *ip, int port, duda_request_t *dr);
    int (*attach)(redisAsyncContext *ctx, duda_request_t *dr);
    int (*setConnectCallback)(redisAsyncContext *ctx, redisConnectCallback *fn);
    int (*setDisconnectCallback)(redisAsyncContext *ctx, redisDisconnectCallback *fn);
    int (*command)(redisAsyncContext *ctx, redisCallbackFn *fn, void *data, const char *format, ...);
    void (*disconnect)(redisAsyncContext *ctx);
    void (*free)(redisAsyncContext *ctx);
    duda_request_t *(*getDudarequest)(const redisAsyncContext *ctx);
};

DUDA_PACKAGE(struct duda_api_redis, redis)

#endif
