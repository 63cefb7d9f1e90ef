// SPDX-License-Identifier: Apache-2.0
/*
 * The package redis: commands to a Redis server (or one that speaks its protocol, such as Valkey), which no worker
 * waits for (docs/reference/duda/redis.md).
 *
 *     duda_load_package(redis, "redis");
 *     db = redis->open(&(struct duda_redis_conf){.address = "127.0.0.1:6379"});       // duda_main()
 *     ...
 *     redisReply *reply;
 *     int err = redis->ask(db, &reply, "INCR %s", name);                              // in a dthread
 *
 * Each worker has one connection to the server, which is made when it is first needed and again when it is lost.
 * Commands of all requests of the worker share it: they are sent together at the end of a turn of the loop, and need
 * not wait for the replies to those before them. Names are looked up by other threads.
 *
 * A command has `timeout_ms` for all: the connection, the wait for a reconnect, and the reply. So a server that is
 * gone, hangs, loads or answers garbage is an error at the call, never a request that hangs:
 *
 *     -ETIMEDOUT                   no reply in time; the server may yet carry the command out
 *     -EPIPE                       the connection was lost before the reply; it may have been carried out
 *     -ECONNREFUSED, -ENOENT ...   no connection, as <monkey/base/dial.h> has them: it was not sent
 *     -EACCES                      a password is missing or wrong, or the user has no right to the command
 *     -EAGAIN                      the server is loading, or busy with a script: try again later
 *     -ENOSPC                      the server has reached `maxmemory`
 *     -EROFS                       it is a replica, which is not written to
 *     -EREMOTEIO                   another error of the server: the type of the key is another, a wrong argument ...
 *     -EPROTO                      what it sends is not the protocol of Redis
 *     -EMSGSIZE                    the reply has more than `reply_bytes_max`, or the command more than 16 MB
 *     -EBUSY                       `pending_max` commands of this worker wait for their replies
 *     -EINVAL                      an argument is wrong, or it is a command that the shared connection cannot take
 *     -ENOMEM
 *
 * error() has a sentence for each. While there is no connection for longer than `timeout_ms`, commands fail at once.
 *
 * Not taken are commands that change the connection (SELECT, AUTH, MULTI, WATCH, SUBSCRIBE, MONITOR ...) and those that
 * block it (BLPOP, WAIT, XREAD BLOCK ...): all requests of the worker share it. See ask_all() and subscribe().
 */
#ifndef DUDA_PACKAGES_REDIS_H
#define DUDA_PACKAGES_REDIS_H

#include "../../package.h"

/*
 * ── types of the client library hiredis 0.14, as it declares them. A service needs not include its headers; if it
 * does, then before this one ──
 */

#if defined(HIREDIS_MAJOR) && HIREDIS_MAJOR > 0
#error "do not include the headers of hiredis, whose types have changed: those of this header suffice"
#endif

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
#endif

#ifndef __HIREDIS_H
struct redisReply {
    int type;                    /* REDIS_REPLY_STRING ... */
    long long integer;           /* of INTEGER */
    size_t len;                  /* of STRING, STATUS and ERROR; `str` has a NUL after it */
    char *str;                   /* may have other NULs */
    size_t elements;             /* of ARRAY */
    struct redisReply **element; /* they may be errors, too */
};
typedef struct redisReply redisReply;

/* Of the original API: no field is for services. */
struct redisContext {
    int err;
    char errstr[128];
    int fd;
    int flags;
    char *obuf;
    void *reader;
    int connection_type;
    void *timeout;
    struct {
        char *host;
        char *source_addr;
        int port;
    } tcp;
    struct {
        char *path;
    } unix_sock;
};
typedef struct redisContext redisContext;
#endif

#ifndef __HIREDIS_ASYNC_H
/* A connection of the original API. The fields after `data` are not declared. */
struct redisAsyncContext {
    redisContext c;
    int err; /* 0 or 1: the connection has failed */
    char *errstr;
    void *data; /* the service's own */
};
typedef struct redisAsyncContext redisAsyncContext;

typedef void(redisCallbackFn)(struct redisAsyncContext *ctx, void *reply, void *data);
typedef void(redisConnectCallback)(const struct redisAsyncContext *ctx, int status);
typedef void(redisDisconnectCallback)(const struct redisAsyncContext *ctx, int status);
#endif

/* ── the server, and commands to it ── */

struct duda_session_backend;
typedef struct duda_redis duda_redis_t;

/* Fields that are 0 or NULL have the value in brackets. */
struct duda_redis_conf {
    const char *address; /* "name:port", "192.0.2.1:port", "[2001:db8::1]:port", "unix:/path" [127.0.0.1:6379] */
    const char *user, *password; /* `user` needs Redis 6 and a password [none] */
    uint32_t db;                 /* the number of the database [0] */
    uint32_t connect_timeout_ms; /* of one connection, with the look-up of its name [1000]; at most 60000 */
    uint32_t timeout_ms;         /* of a command, see above [2000]; at most 60000 */
    uint32_t pending_max;        /* commands that wait in each worker [10000]; at most 1000000 */
    uint32_t reply_bytes_max;    /* of a reply in memory [16 MB]; at most 512 MB */
};

/* A word of a command, with any bytes. A `len` of -1 is that of a string. */
struct duda_redis_arg {
    const void *data;
    ssize_t len;
};

/* The arguments `args, n` of functions: DUDA_REDIS_ARGS({"SET", -1}, {key, -1}, {bytes, n}). C only. */
#define DUDA_REDIS_ARGS(...) \
    (const struct duda_redis_arg[]){__VA_ARGS__}, \
        (unsigned)(sizeof((const struct duda_redis_arg[]){__VA_ARGS__}) / sizeof(struct duda_redis_arg))

/* One of several commands, and what has become of it. */
struct duda_redis_item {
    const struct duda_redis_arg *args;
    unsigned n_args;
    int result;        /* 0 or an error */
    redisReply *reply; /* for free(), or NULL */
};

enum {
    DUDA_REDIS_ITEMS_MAX = 1024,
    /* Flags of subscribe(). */
    DUDA_REDIS_PATTERN = 1,    /* the channel is a pattern, as PSUBSCRIBE has them */
    DUDA_REDIS_ONE_WORKER = 2, /* only worker 0 receives the messages; else each worker */
};

/*
 * Receives the reply to a command, which is valid until it returns, or NULL and an error. Called once, in the worker of
 * the call and never from within it, also when the service ends (-ECANCELED). `dr` is NULL if the request has ended
 * meanwhile, or the call had none.
 */
typedef void (*duda_redis_fn)(duda_request_t *dr, int result, const redisReply *reply, void *data);
/* Receives a message, in a worker. Both texts end with a NUL that does not count, and are valid until it returns. */
typedef void (*duda_redis_message_fn)(const char *channel, const char *message, size_t len, void *data);

struct duda_api_redis {
    /*
     * ── the original API: a connection for each call of connect(). They work in callbacks of a worker ──
     *
     * connect() makes a context for a port of an address or a name; NULL without memory, or with 1,000 contexts in the
     * worker. If the address is wrong, `err` is set, and the context ends after the callback that has made it.
     * attach() connects it; `dr`, which both may have as NULL, is what getDudarequest() returns until that request
     * ends, then NULL. command() has `format` as ask(), and `fn` is called with the reply, valid until it returns, or
     * NULL if the connection has failed or there was no reply for 5 seconds. disconnect() ends the connection after the
     * last reply, free() at once. A context ends with its connection: after its last callback it must not be used.
     * Functions that return an int return REDIS_OK or REDIS_ERR.
     */
    redisAsyncContext *(*connect)(const char *ip, int port, duda_request_t *dr);
    int (*attach)(redisAsyncContext *ctx, duda_request_t *dr);
    int (*setConnectCallback)(redisAsyncContext *ctx, redisConnectCallback *fn);
    int (*setDisconnectCallback)(redisAsyncContext *ctx, redisDisconnectCallback *fn);
    int (*command)(redisAsyncContext *ctx, redisCallbackFn *fn, void *data, const char *format, ...);
    void (*disconnect)(redisAsyncContext *ctx);
    void (*free)(redisAsyncContext *ctx);
    duda_request_t *(*getDudarequest)(const redisAsyncContext *ctx);

    /* ── servers ── */

    /*
     * Makes a server known to the service; in duda_main(). `conf` is copied; NULL: all defaults. It does not connect.
     * Returns NULL, which is logged: a field is wrong, there are 16 of them, or no memory.
     */
    duda_redis_t *(*open)(const struct duda_redis_conf *conf);
    /*
     * Has `fn` called with the messages of a channel; in duda_main(). Each worker has a further connection for the
     * channels of a server, and subscribes again after it was lost; messages of that time are lost. Returns 0, or
     * -EINVAL (an argument, or not in duda_main()) or -ENOMEM, which is logged.
     */
    int (*subscribe)(duda_redis_t *db, const char *channel, unsigned flags, duda_redis_message_fn fn, void *data);

    /*
     * ── commands in straight code: a dthread waits for the reply. They return 0 or an error, and also what each wait
     * of a dthread returns: -ECONNABORTED (its request has ended), -ECANCELED or -EPERM (no dthread waits here). `*ret`
     * is the reply, one block for free() or gc->add(), or NULL after an error; if `ret` is NULL the reply is dropped ──
     */

    /*
     * Sends a command, whose words are separated by spaces. In a word "%s" is replaced by a string, "%b" by bytes
     * (their address, then a size_t), "%d", "%lld", "%f" and so on as in printf(), "%%" by a "%": a value never becomes
     * several words. The compiler does not check the arguments; see ask_args().
     */
    int (*ask)(duda_redis_t *db, redisReply **ret, const char *format, ...);
    int (*ask_args)(duda_redis_t *db, redisReply **ret, const struct duda_redis_arg *args, unsigned n);
    /*
     * Sends up to 1,024 commands at once, and waits for all replies; `result` and `reply` of each are set. With
     * `atomic` the server runs them as one step (MULTI ... EXEC); if it refuses one, none is run. Returns 0, or the
     * error of the first one that has failed; all replies are then set nevertheless.
     */
    int (*ask_all)(duda_redis_t *db, struct duda_redis_item *items, unsigned n, bool atomic);

    /*
     * ── commands with a callback; in callbacks of a worker and dthreads. `dr` may be NULL. They return 0, or an error,
     * after which `fn` is not called. `fn` NULL: the reply is dropped ──
     */
    int (*send)(duda_redis_t *db, duda_request_t *dr, duda_redis_fn fn, void *data, const char *format, ...);
    int (*send_args)(duda_redis_t *db, duda_request_t *dr, duda_redis_fn fn, void *data,
                     const struct duda_redis_arg *args, unsigned n);

    /*
     * Returns a sentence about the last error of this server in this worker, without a full stop; "" if there was none.
     * Valid until the next call, and until the callback returns or the dthread waits.
     */
    const char *(*error)(duda_redis_t *db);

    /* ── sessions ── */

    /* Returns what keeps sessions in this server, for struct duda_session_conf (<duda/session.h>). In duda_main(). */
    const struct duda_session_backend *(*sessions)(duda_redis_t *db);
};

DUDA_PACKAGE(struct duda_api_redis, redis)

#if DUDA_API_LEVEL < 3

/* Until the autumn of 2012 connect() had no request. Other numbers of arguments are left alone. */
#define duda_old_connect_2(ip, port) connect(ip, port, NULL)
#define connect(...) DUDA_OLD_6TH(__VA_ARGS__, connect, connect, connect, duda_old_connect_2, connect, )(__VA_ARGS__)

#endif

#endif
