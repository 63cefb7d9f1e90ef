// SPDX-License-Identifier: Apache-2.0
/* How much memory there is for this process: for defaults of what caches and buffers may take. */
#ifndef MONKEY_MEMORY_H
#define MONKEY_MEMORY_H

#include <stdint.h>

#include "../status.h"

MK_C_BEGIN

/*
 * Returns the memory of the machine in bytes, or the limit of the control group (a container, a systemd unit) that the
 * process is in or of one above it, if that is less; UINT64_MAX if neither is known. Any thread. It reads files of the
 * kernel: not for each request.
 */
MK_API uint64_t mk_memory_bytes(void);

MK_C_END

#endif
