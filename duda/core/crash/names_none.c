// SPDX-License-Identifier: Apache-2.0
/*
 * In place of names.c where the compiler brings no libbacktrace: exported functions have names only.
 */
#include "crash/names.h"

unsigned names_find(struct crash_object *object, uintptr_t address, name_fn fn, void *ctx)
{
    (void)object, (void)address, (void)fn, (void)ctx;
    return 0;
}

const char *names_explain(const struct crash_object *object)
{
    (void)object;
    return NULL;
}
