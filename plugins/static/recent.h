// SPDX-License-Identifier: Apache-2.0
/*
 * Requests that come at the same moment and ask for the same small file share one reading of it: from the second one
 * on in a turn of the loop. Nothing is believed for longer than that turn, so that no request can meet a file that was
 * replaced before its turn began; nor behind a request that may have changed something.
 */
#ifndef STATIC_RECENT_H
#define STATIC_RECENT_H

#include "model.h"

enum { RECENT_BYTES_MAX = 4096, RECENT_PATH_BYTES_MAX = 256 };

/* What a worker was asked for last, under one generation. */
struct recent {
    uint64_t turn; /* of the loop; 0: none */
    const struct site *site;
    size_t path_len;
    struct found found; /* a file: it has been read; its name is NULL when that is the path's */
    char path[RECENT_PATH_BYTES_MAX], bytes[RECENT_BYTES_MAX];
};

void recent_forget(struct recent *r);

/* As site_find() with `cached`; a file with content has no descriptor, and its content lasts until the next call. */
struct found recent_find(struct recent *r, uint64_t turn, const struct place *at, const struct mk_accept *accept);

#endif
