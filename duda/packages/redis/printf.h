// SPDX-License-Identifier: Apache-2.0
/*
 * Commands by a format, as hiredis reads it. In a separate file, since the types of hiredis and those of the package's
 * header, which does not need hiredis, are not for the same file.
 */
#ifndef DUDA_PACKAGES_REDIS_PRINTF_H
#define DUDA_PACKAGES_REDIS_PRINTF_H

#include <monkey/base/str.h>

#include <stdarg.h>

/* Formats a command. Returns its bytes for redis_printf_free(); `.p` NULL with -EINVAL (the format) or -ENOMEM. */
struct mk_str redis_printf(const char *format, va_list args, int *ret_err);
void redis_printf_free(struct mk_str command);

#endif
