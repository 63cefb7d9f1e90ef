// SPDX-License-Identifier: Apache-2.0
/*
 * Writes commands of the meta protocol, and tells what their replies mean. Pure: it appends to a buffer.
 */
#ifndef DUDA_PACKAGES_MEMCACHED_COMMAND_H
#define DUDA_PACKAGES_MEMCACHED_COMMAND_H

#include "reply.h"

#include <duda/packages/memcached/memcached.h>
#include <monkey/base/buf.h>

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
