// SPDX-License-Identifier: Apache-2.0
/*
 * Reads lines of replies of the meta protocol (doc/protocol.txt of memcached 1.6).
 *
 *     VA 5 f7 c12 t-1 O3\r\n      HD O4\r\n      EN\r\n      SERVER_ERROR out of memory\r\n
 *     value\r\n
 *
 * Pure: bytes in, a result out; no allocation.
 */
#ifndef DUDA_PACKAGES_MEMCACHED_REPLY_H
#define DUDA_PACKAGES_MEMCACHED_REPLY_H

#include <monkey/base/str.h>

enum mc_code {
    MC_HD, /* done */
    MC_VA, /* a value follows */
    MC_EN, /* a miss */
    MC_NF, /* not found */
    MC_NS, /* not stored */
    MC_EX, /* it has changed */
    MC_MN, /* reply to mn */
    MC_ME, /* figures */
    MC_ERROR,
    MC_CLIENT_ERROR,
    MC_SERVER_ERROR,
};

enum {
    MC_LINE_BYTES_MAX = 2048,
    MC_VALUE_BYTES_MAX = 1 << 30, /* the most that the option -I of memcached allows */
};

struct mc_reply {
    enum mc_code code;
    size_t len;         /* of the value, with "\r\n" after it, that follows the line */
    struct mk_str text; /* of ME and the errors: what follows the code; in the caller's bytes */
    uint64_t opaque, cas;
    int64_t ttl_s;
    uint32_t flags;
    bool has_opaque, won, stale, busy;
};

/*
 * Reads the line at the beginning of `n` bytes. Returns how many bytes it has, with its end; 0: it is not complete; or
 * -EPROTO, with a clause about the server in `*ret_error`.
 */
int mc_reply_parse(const char *p, size_t n, struct mc_reply *ret, const char **ret_error);

#endif
