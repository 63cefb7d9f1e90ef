// SPDX-License-Identifier: Apache-2.0
/* What hosts are called, and lines of the error log about them. */
#include <monkey/plugin.h>

#include "http/conn_log.h"
#include "server/generation/generation.h"

struct mk_str mk_host_label(const struct mk_host *host)
{
    struct mk_str name = mk_host_name(host, 0), file = mk__conf_file_name(host->set);
    return name.len ? name : file.len ? file : MK_STR("default");
}

static void write_line(const struct mk_host *host, enum mk__log_limit_kind limit, enum mk_log_level level,
                       const char *format, va_list args)
{
    if (!mk_log_wants(level))
        return;
    struct mk__log_subject s = {.host = host ? mk_host_label(host) : MK_STR_NONE, .owner = host, .limit = limit};
    mk__conn_log_write(level, &s, format, args);
}

void mk_host_log(const struct mk_host *host, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(host, MK__LOG_LIMIT_LINES, level, format, args);
    va_end(args);
}

void mk_host_log_text(const struct mk_host *host, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(host, MK__LOG_LIMIT_BYTES, level, format, args);
    va_end(args);
}

void mk_host_log_all(const struct mk_host *host, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(host, MK__LOG_LIMIT_NONE, level, format, args);
    va_end(args);
}
