// SPDX-License-Identifier: Apache-2.0
/* Lines of the error log about hosts. Builds for small devices leave this file out. */
#include <monkey/plugin.h>

#include "http/conn_log.h"

void mk_host_log(const struct mk_host *host, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    if (!mk_log_wants(level))
        return;
    struct mk__log_subject s = {.host = host ? mk_host_name(host, 0) : MK_STR_NONE};
    if (host && !s.host.len)
        s.host = MK_STR("default");
    va_start(args, format);
    mk__conn_log_write(level, &s, format, args);
    va_end(args);
}
