// SPDX-License-Identifier: Apache-2.0
/*
 * The object `logger`.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "log/log.h"
#include "log/message.h"
#include "objects.h"
#include "service/service.h"

static int create_logger(duda_logger_t *logger, const char *name)
{
    static const char call[] = "logger->create()";
    if (!logger) {
        message_log(MK_LOG_ERROR, "%s: there is no logger", call);
        return -1;
    }
    *logger = (duda_logger_t){0};
    if (!phase_check(PHASE_MAIN, call))
        return -1;
    logger->log = log_new(current.service, name, call);
    logger->enabled = logger->log != NULL;
    return logger->log ? 0 : -1;
}

static int print_line(duda_logger_t *logger, const char *format, ...)
{
    if (!logger || !logger->log || !format)
        return -1;
    if (!logger->enabled)
        return 0;
    va_list args;
    va_start(args, format);
    int result = log_vadd(logger->log, format, args);
    va_end(args);
    return result;
}

const struct duda_api_logger object_logger = {
    .create = create_logger,
    .print = print_line,
};
