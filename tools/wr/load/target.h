// SPDX-License-Identifier: Apache-2.0
/*
 * The server under load: its URL, taken apart, and its addresses.
 */
#ifndef WR_LOAD_TARGET_H
#define WR_LOAD_TARGET_H

#include <stdbool.h>

#include <monkey/base/str.h>

#include "net/addr.h"

enum { TARGET_ADDRESSES_MAX = 8 };

struct target {
    bool tls;
    bool websocket; /* ws:// or wss:// */
    char host[256]; /* a name or an address, without brackets */
    char port[8];
    char authority[280]; /* for the field Host: without the default port */
    struct mk__addr addresses[TARGET_ADDRESSES_MAX];
    unsigned addresses_n;
};

/*
 * Takes `http://host[:port][/path]`, https://, ws:// or wss:// apart. `*ret_path` points into `url`.
 * Returns 0, or -EINVAL with a phrase.
 */
int target_parse(struct target *t, const char *url, struct mk_str *ret_path, const char **ret_error);

/* Returns whether both are the same server. */
bool target_equal(const struct target *a, const struct target *b);

/* Finds the addresses. Returns 0, or -ENOENT with a phrase. */
int target_resolve(struct target *t, const char **ret_error);

#endif
