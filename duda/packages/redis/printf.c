// SPDX-License-Identifier: Apache-2.0
/*
 * Commands by a format (printf.h).
 */
#include "printf.h"

#include <hiredis/hiredis.h>

#include <errno.h>

struct mk_str redis_printf(const char *format, va_list args, int *ret_err)
{
    char *command = NULL;
    int len = redisvFormatCommand(&command, format, args);
    *ret_err = len > 0 ? 0 : len == -1 ? -ENOMEM : -EINVAL;
    return len > 0 ? mk_str(command, (size_t)len) : MK_STR_NONE;
}

void redis_printf_free(struct mk_str command)
{
    redisFreeCommand((char *)(uintptr_t)command.p);
}
