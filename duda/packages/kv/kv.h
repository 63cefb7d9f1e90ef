// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of the package kv: stores (store.c), and the calls of the original (old.c).
 */
#ifndef DUDA_PACKAGES_KV_PACKAGE_H
#define DUDA_PACKAGES_KV_PACKAGE_H

#include "table.h"

#include <duda/packages/kv/kv.h>
#include <monkey/base/time.h>

struct duda_kv {
    kv_conn_t self;       /* of this store: services of 2013 have a pointer to it as their connection */
    struct duda_kv *next; /* of the service */
    struct kv_table table;
};

/* The calls of the original. */
extern const struct duda_api_kv kv_old_calls;

/* Makes a store of the service whose code runs; NULL with errno on failure. */
struct duda_kv *kv_open(const struct duda_kv_conf *conf);
/* Frees a store before the service ends. Returns 0, or -ENOENT: it is none of this service. */
int kv_close(struct duda_kv *store);

#endif
