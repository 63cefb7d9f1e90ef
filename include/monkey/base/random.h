// SPDX-License-Identifier: Apache-2.0
/*
 * Random bytes for keys, tokens, ids and nonces, which cannot be predicted: those of the kernel (getrandom(2)). The
 * process keeps no state of the generator, so that a child of fork(2) gets other bytes than its parent, and nothing has
 * to be called in it.
 */
#ifndef MONKEY_RANDOM_H
#define MONKEY_RANDOM_H

#include <stddef.h>

#include "../status.h"

MK_C_BEGIN

/*
 * Fills `bytes` bytes at `to`. Any thread. Takes about 1 µs, and 4 µs more for each KB.
 *
 * Blocks only until the kernel has initialized its generator, once after the system has booted. The server waits for
 * that when it loads a configuration, so it does not block in hooks of workers and requests. Signals do not matter.
 * Returns 0, or -errno of getrandom(2), such as -ENOSYS or -EPERM of a filter for system calls: the bytes are not
 * random then.
 */
MK_API int mk_random(void *to, size_t bytes);

MK_C_END

#endif
