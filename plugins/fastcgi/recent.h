// SPDX-License-Identifier: Apache-2.0
/*
 * Scripts that were found in the last second, by the paths of requests: a busy script is not looked for on a disk
 * thread each time. That a file was removed or replaced is seen a second later, as with the root of a host. Of a worker
 * and a host; in the worker's thread.
 */
#ifndef FASTCGI_RECENT_H
#define FASTCGI_RECENT_H

#include "request.h"

enum { RECENT_MS = 1000, RECENT_SLOTS = 64 };

struct recent_script {
    const struct fastcgi_conf *conf; /* NULL: the slot is empty */
    uint64_t end_ms;
    struct mk_str path;           /* of the request */
    struct fastcgi_script script; /* without a prefix for the log */
    size_t bytes;                 /* of the strings, from path.p on */
};

/* Zeros at first. */
struct recent {
    struct recent_script slots[RECENT_SLOTS];
};

/* Returns the script of a path, valid until the next recent_add(); NULL: it must be looked for. */
const struct fastcgi_script *recent_find(const struct recent *r, const struct fastcgi_conf *conf, struct mk_str path,
                                         uint64_t now_ms);
/* Adds a script, whose strings are copied, in place of another one; does nothing without memory. */
void recent_add(struct recent *r, const struct fastcgi_conf *conf, struct mk_str path,
                const struct fastcgi_script *script, uint64_t now_ms);
void recent_release(struct recent *r);

#endif
