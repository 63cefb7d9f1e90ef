// SPDX-License-Identifier: Apache-2.0
/*
 * The meta protocol (doc/protocol.txt of memcached 1.6): reads lines of replies, writes commands, and tells what their
 * replies mean. Pure: bytes in, a result out; it appends to a buffer.
 *
 *     VA 5 f7 c12 t-1 O3\r\n      HD O4\r\n      EN\r\n      SERVER_ERROR out of memory\r\n
 *     value\r\n
 */
#ifndef DUDA_PACKAGES_MEMCACHED_PROTOCOL_H
#define DUDA_PACKAGES_MEMCACHED_PROTOCOL_H

#include <duda/packages/memcached/memcached.h>
#include <monkey/base/buf.h>
#include <monkey/base/str.h>

/* ── replies ── */

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

/* ── commands ── */

enum {
    MC_NOOP = DUDA_MEMCACHED_DESCRIBE + 1, /* mn, the first command of a connection */
    MC_OPS,
    MC_HEAD_BYTES_MAX = 512, /* of a command without its value */
};

/*
 * Checks a command. Returns 0, or -EINVAL or -EMSGSIZE (the value has more than `value_bytes_max`), with a clause in
 * `*ret_error`.
 */
int mc_command_check(const struct duda_memcached_command *c, size_t value_bytes_max, const char **ret_error);

/* Returns the key of a command that was checked. */
struct mk_str mc_command_key(const struct duda_memcached_command *c);

/*
 * Appends a command that was checked. `now_s`: the time since 1970, which memcached wants for what ends in more than 30
 * days. Errors are those of the buffer.
 */
void mc_command_write(struct mk_buf *out, const struct duda_memcached_command *c, uint32_t opaque, int64_t now_s);
/* Appends mn. */
void mc_command_write_noop(struct mk_buf *out);

/*
 * Returns the result of a reply to a command: 0, -ENOENT, -EEXIST or -EREMOTEIO (an error of the server); or -EPROTO: a
 * reply to another command.
 */
int mc_command_result(unsigned op, const struct mc_reply *reply);

#endif
