// SPDX-License-Identifier: Apache-2.0
/*
 * The package memcached.
 */
#ifndef DUDA_PACKAGES_MEMCACHED_H
#define DUDA_PACKAGES_MEMCACHED_H

#include "../../package.h"

typedef struct memcached_conn memcached_t;

struct duda_api_memcached {
    /* Connects to the servers of a configuration text ("--SERVER=localhost:11211"). Returns NULL for an error. */
    memcached_t *(*connect)(const char *conf, size_t len, duda_request_t *dr);
    int (*set)(memcached_t *conn, const char *key, size_t key_len, const char *value, size_t len, int64_t expires,
               uint32_t flags);
    /* Returns a new string for free(), or NULL. */
    char *(*get)(memcached_t *conn, const char *key, size_t key_len, size_t *ret_len, uint32_t *ret_flags);
    void (*disconnect)(memcached_t *conn);
};

DUDA_PACKAGE(struct duda_api_memcached, memcached)

#endif
