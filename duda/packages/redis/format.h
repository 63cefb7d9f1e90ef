// SPDX-License-Identifier: Apache-2.0
/*
 * Commands as the bytes that are sent, and which of them the shared connection takes. Pure, but for the heap.
 *
 *     *2\r\n$3\r\nGET\r\n$1\r\nx\r\n
 */
#ifndef DUDA_PACKAGES_REDIS_FORMAT_H
#define DUDA_PACKAGES_REDIS_FORMAT_H

#include <duda/packages/redis/redis.h>
#include <monkey/base/str.h>

#include <stdarg.h>

enum { REDIS_COMMAND_BYTES_MAX = 16 << 20, REDIS_ARGS_MAX = 1 << 20 };

/* Returns how many bytes a command has; 0: an argument is wrong. More than REDIS_COMMAND_BYTES_MAX: it is too large. */
size_t redis_format_measure(const struct duda_redis_arg *args, unsigned n);
/* Writes that many bytes. Returns their end. */
char *redis_format_write(char *to, const struct duda_redis_arg *args, unsigned n);

/*
 * Formats a command as hiredis does. Returns its bytes for redis_format_free(), `.p` NULL with an error in *ret_err:
 * -EINVAL (the format), -EMSGSIZE or -ENOMEM.
 */
struct mk_str redis_format_text(const char *format, va_list args, int *ret_err);
void redis_format_free(struct mk_str command);

/* Cuts the next word off the bytes of one command; the first call also its head. Returns false at the end. */
bool redis_format_next(struct mk_str *rest, struct mk_str *ret_word);
/* Returns why a command cannot be sent over a connection that many requests share, a clause; NULL: it can. */
const char *redis_format_refuse(struct mk_str command);

#endif
