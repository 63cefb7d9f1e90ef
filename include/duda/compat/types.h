// SPDX-License-Identifier: Apache-2.0
/*
 * The original API ("webservice.h"): types and constants that its objects share.
 *
 * Levels: DUDA_API_LEVEL 0, 1 or 2 is the level that a service was written for (docs/internals/duda-compat.md). Without
 * it DUDA_OLD_ANY_LEVEL is set: the header then takes the forms of level 1, and those of level 2 where a call can tell
 * them apart.
 */
#ifndef DUDA_COMPAT_TYPES_H
#define DUDA_COMPAT_TYPES_H

#ifndef DUDA_API_LEVEL
#define DUDA_API_LEVEL 1
#define DUDA_OLD_ANY_LEVEL 1
#endif

#include "../types.h"

/* Not terminated by a NUL, unless the description of a field says so. */
struct duda_old_string {
    char *data;
    unsigned long len;
};

enum { DUDA_OLD_SEGMENTS_MAX = 32 };

#ifndef DUDA_FRAMEWORK

typedef struct duda_old_string mk_pointer;
typedef struct duda_old_string mk_ptr_t;

#define MK_TRUE 1
#define MK_FALSE 0
#define MK_ERROR -1
#define MK_MAX_PATH 1024
#ifndef MAX_PATH
#define MAX_PATH MK_MAX_PATH
#endif
#define MK_STR_SENSITIVE 0
#define MK_STR_INSENSITIVE 1

/* The first and the second of several arguments. */
#define DUDA_OLD_FIRST(first, ...) first
#define DUDA_OLD_SECOND(first, second, ...) second

/* The 6th argument: chooses a form of a macro by the number of its arguments, which are in front of the forms. */
#define DUDA_OLD_6TH(a, b, c, d, e, f, ...) f

#define mk_likely(condition) __builtin_expect(!!(condition), 1)
#define mk_unlikely(condition) __builtin_expect(!!(condition), 0)

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

#endif

#endif
