// SPDX-License-Identifier: Apache-2.0
/*
 * The package memcached: a cache in memcached servers, version 1.6 or newer, which no worker waits for
 * (docs/reference/duda/memcached.md). It speaks the meta protocol.
 *
 *     duda_load_package(memcached, "memcached");               // in duda_main()
 *     cache = memcached->open(&(struct duda_memcached_conf){.servers = "10.0.0.1:11211 10.0.0.2:11211"});
 *     ...
 *     struct duda_memcached_reply page;                        // in a dthread
 *     int err = memcached->fetch(cache, "page:7", &page);
 *
 * A key belongs to one server, by rendezvous hashing: a server more or less moves only the keys that it has. Each
 * worker has its own connections to each server, made when they are first needed and again when they are lost. Commands
 * of all requests of the worker share them: they are sent together at the end of a turn of the loop, and need not wait
 * for the replies to those before them. Names are looked up by other threads.
 *
 * A command has `timeout_ms` for all: the connection and the reply. So a server that is gone, hangs or answers garbage
 * is an error at the call, never a request that hangs:
 *
 *     -ENOENT                      there is no such key (a miss)
 *     -EEXIST                      add(): there is the key; with `cas`: the item was changed
 *     -ETIMEDOUT                   no reply in time; the server may yet carry the command out
 *     -EPIPE                       the connection was lost before the reply; it may have been carried out
 *     -ECONNREFUSED, -ENXIO ...    no connection, as <monkey/base/dial.h> has them: it was not sent
 *     -EPROTO                      what it sends is not the meta protocol
 *     -EREMOTEIO                   an error of the server: no memory, the item is no number ...
 *     -EMSGSIZE                    the value has more than `value_bytes_max`
 *     -EBUSY                       `pending_max` commands or `queue_bytes_max` bytes of this worker wait
 *     -EINVAL                      an argument is wrong
 *     -ENOMEM
 *
 * error() has a sentence for each. After a failure the next connection is tried after 25 to 50 ms, then twice as long
 * each time, at most one second; until then commands to that server fail at once.
 *
 * A late reply to a command that has timed out is dropped. If the server has sent nothing at all since the command was
 * sent, or owes a reply for twice the time, the connection is closed: all commands on it fail with -ETIMEDOUT.
 */
#ifndef DUDA_PACKAGES_MEMCACHED_H
#define DUDA_PACKAGES_MEMCACHED_H

#include "../../package.h"

/* Servers that are known to a service. */
typedef struct duda_memcached duda_memcached_t;

/* Fields that are 0 or NULL have the value in brackets. */
struct duda_memcached_conf {
    /*
     * 1 to 64 of "name:port", "192.0.2.1:port", "[2001:db8::1]:port" or "unix:/path", separated by spaces or commas
     * [127.0.0.1:11211]. All clients must write them in the same way, in any order: a key's server depends on the text.
     */
    const char *servers;
    uint32_t connect_timeout_ms; /* of one connection, with the look-up of its name [1000]; at most 60000 */
    uint32_t timeout_ms;         /* of a command, see above [1000]; at most 60000 */
    uint32_t connections_max;    /* of each worker to each server [2]; at most 16 */
    uint32_t pending_max;        /* commands that wait in each worker [10000]; at most 1000000 */
    uint32_t value_bytes_max;    /* of a value, also of one that is received [1 MB]; at most 64 MB */
    uint32_t queue_bytes_max;    /* of commands without a reply, for a connection [16 MB]; at most 256 MB */
    /*
     * While a server is not reachable its keys are those of the others. Else they are errors. What is written meanwhile
     * is not seen when the server is back, with what it had before.
     */
    bool skip_dead;
};

enum duda_memcached_op {
    DUDA_MEMCACHED_FETCH,       /* the value */
    DUDA_MEMCACHED_FETCH_TOUCH, /* the value, which then ends after `ttl_s` */
    DUDA_MEMCACHED_RECACHE,     /* the value, or the right to make it, see recache() */
    DUDA_MEMCACHED_TOUCH,       /* the item ends after `ttl_s` */
    DUDA_MEMCACHED_STORE,       /* sets the value */
    DUDA_MEMCACHED_ADD,         /* sets it if there is no such key */
    DUDA_MEMCACHED_REPLACE,     /* sets it if there is the key */
    DUDA_MEMCACHED_APPEND,      /* adds to the end of a value that is there, which keeps `ttl_s` and `flags` */
    DUDA_MEMCACHED_PREPEND,     /* adds to its begin */
    DUDA_MEMCACHED_REMOVE,      /* removes the item */
    DUDA_MEMCACHED_INVALIDATE,  /* marks the item as stale, see invalidate() */
    DUDA_MEMCACHED_INCREASE,    /* adds `n` to a number, which wraps around */
    DUDA_MEMCACHED_DECREASE,    /* subtracts `n`; the result is at least 0 */
    DUDA_MEMCACHED_DESCRIBE,    /* figures of the item, for people; the value is "exp=-1 la=3 cas=7 ..." */
};

enum {
    DUDA_MEMCACHED_KEY_BYTES = 250,        /* of a key without spaces, control characters and 0x7f */
    DUDA_MEMCACHED_BINARY_KEY_BYTES = 186, /* of another one, which is sent in base64 */
    DUDA_MEMCACHED_SERVERS_MAX = 64,
    DUDA_MEMCACHED_MANY_MAX = 1024, /* commands of one call */
};

struct duda_memcached_command {
    enum duda_memcached_op op;
    const void *key; /* any bytes */
    size_t key_len;  /* 0: `key` is a string */
    const void *value;
    size_t len;
    uint32_t ttl_s;     /* seconds from now, 0: forever. Of numbers: from its creation */
    uint32_t flags;     /* the service's own, kept with the value */
    uint64_t cas;       /* of a reply: only if the item has not been written since then; 0: in any case */
    uint64_t n;         /* of INCREASE and DECREASE */
    uint64_t initial;   /* with `creates`: the result if there is no such key */
    uint32_t recache_s; /* of RECACHE */
    bool creates;       /* of INCREASE and DECREASE */
};

/* What has become of a command. Fields that it does not have are 0. */
struct duda_memcached_reply {
    int result;      /* 0 or an error */
    char *value;     /* with a NUL after it that does not count; for free() or gc->add(). NULL: none */
    size_t len;      /* of the value */
    uint64_t number; /* of INCREASE and DECREASE */
    uint64_t cas;    /* changes with each write of the item */
    int64_t ttl_s;   /* what is left; -1: forever */
    uint32_t flags;
    bool won;   /* the caller is to make the value anew; no other caller gets this */
    bool busy;  /* another one has won, and has not stored the value yet */
    bool stale; /* the value was invalidated */
};

/*
 * Receives the reply, which is valid until it returns. It may keep `value`: then it sets the field to NULL. Called
 * once, in the worker of the call and never from within it, also when the service ends (-ECANCELED). `dr` is NULL if
 * the request has ended meanwhile, or the call had none.
 */
typedef void (*duda_memcached_fn)(duda_request_t *dr, struct duda_memcached_reply *reply, void *data);

struct duda_api_memcached {
    /* ── servers ── */

    /*
     * Makes servers known to the service; in duda_main(). `conf` is copied; NULL: all defaults. It does not connect.
     * Returns NULL, which is logged: a field is wrong, the service has 16 of them, or no memory.
     */
    duda_memcached_t *(*open)(const struct duda_memcached_conf *conf);

    /*
     * ── straight code: a dthread waits for the reply. Functions return 0 or an error, and also what each wait of a
     * dthread returns: -ECONNABORTED (its request has ended), -ECANCELED or -EPERM (no dthread waits here). Keys are
     * strings. `ret` may be NULL where a function does not only read; else it is set, also after an error ──
     */

    int (*fetch)(duda_memcached_t *cache, const char *key, struct duda_memcached_reply *ret);
    int (*store)(duda_memcached_t *cache, const char *key, const void *value, size_t len, uint32_t ttl_s);
    int (*add)(duda_memcached_t *cache, const char *key, const void *value, size_t len, uint32_t ttl_s);
    int (*replace)(duda_memcached_t *cache, const char *key, const void *value, size_t len, uint32_t ttl_s);
    int (*append)(duda_memcached_t *cache, const char *key, const void *value, size_t len);
    int (*prepend)(duda_memcached_t *cache, const char *key, const void *value, size_t len);
    int (*remove)(duda_memcached_t *cache, const char *key);
    int (*touch)(duda_memcached_t *cache, const char *key, uint32_t ttl_s);
    /* A missing number is 0, and ends after `ttl_s`. `*ret` is the result. */
    int (*increase)(duda_memcached_t *cache, const char *key, uint64_t n, uint32_t ttl_s, uint64_t *ret);
    int (*decrease)(duda_memcached_t *cache, const char *key, uint64_t n, uint32_t ttl_s, uint64_t *ret);
    /*
     * Fetches a value that many requests want and that is costly to make: the server chooses one caller that makes it
     * (`won`), so that they do not all make it at once. It chooses one if there is no such key, if the value ends
     * within `recache_s` seconds (0: never so), or is stale. A caller that has won and does not store the value within
     * `wait_s` seconds has lost the right. Returns
     *
     *     0           the value. `won`: make it anew, others get this one meanwhile
     *     -ENOENT     there is no value. `won`: make it; `busy`: another caller makes it, ask again in a while
     *
     * or an error. An empty value counts as none.
     */
    int (*recache)(duda_memcached_t *cache, const char *key, uint32_t wait_s, uint32_t recache_s,
                   struct duda_memcached_reply *ret);
    /* Marks a value as stale: it stays for `ttl_s` (0: as long as before), and one caller of recache() is to make it
     * anew. */
    int (*invalidate)(duda_memcached_t *cache, const char *key, uint32_t ttl_s);
    /*
     * Fetches up to 1,024 values at once, from all servers at the same time. Returns 0, also if some are missing, or
     * the first error of another kind; all replies are then set nevertheless.
     */
    int (*fetch_many)(duda_memcached_t *cache, const char *const *keys, unsigned n, struct duda_memcached_reply *ret);

    /* Any command. call_many() sends up to 1,024 at once; it returns as fetch_many(). They may run in any order. */
    int (*call)(duda_memcached_t *cache, const struct duda_memcached_command *command,
                struct duda_memcached_reply *ret);
    int (*call_many)(duda_memcached_t *cache, const struct duda_memcached_command *commands, unsigned n,
                     struct duda_memcached_reply *ret);

    /*
     * Sends a command; in callbacks of a worker and dthreads. `dr` may be NULL, and so may `fn`: the reply is dropped.
     * Returns 0, or an error, after which `fn` is not called.
     */
    int (*send)(duda_memcached_t *cache, duda_request_t *dr, const struct duda_memcached_command *command,
                duda_memcached_fn fn, void *data);

    /*
     * Returns a sentence about the last error of these servers in this worker, without a full stop; "" if there was
     * none. Valid until the next call, and until the callback returns or the dthread waits.
     */
    const char *(*error)(duda_memcached_t *cache);
};

DUDA_PACKAGE(struct duda_api_memcached, memcached)

#endif
