// SPDX-License-Identifier: Apache-2.0
#ifndef MK_BASE_MEMORY_H
#define MK_BASE_MEMORY_H

#include <monkey/base/memory.h>

/* Reads the text of a control group's file such as "max" or "536870912". Returns bytes; 0: no limit. */
MK_COLD uint64_t mk__memory_from_limit(const char *text);

#endif
