// SPDX-License-Identifier: Apache-2.0
/*
 * Log files of services. Any thread adds lines; one thread of the process writes them (<monkey/kit/log_writer.h>). It
 * starts with the first worker of a service with logs.
 */
#ifndef DUDA_CORE_LOG_LOG_H
#define DUDA_CORE_LOG_LOG_H

#include "service/service.h"

#include <duda/logger.h>
#include <monkey/status.h>

#include <stdarg.h>

struct service;

/* Of a service; grows in duda_main() only. */
struct logs {
    struct duda_log *first;
    unsigned n;
    struct duda_log *messages; /* of conf->bind_messages(), or NULL */
};

FEATURE_SLOT(logs_of, struct logs, service, FEATURE_LOG)

/* The plugin starts: makes the writer of the process, without its thread, unless there is one. Returns 0 or -ENOMEM. */
int log_open_writer(void);
/* The plugin stops: writes what waits, for a second at most, and ends the thread. */
void log_stop_writer(void);
/* The plugin's hook reopen: has all logs opened again. Does not wait. */
void log_reopen_all(void *state);

/* Makes a log of the service for LogDir/NAME. Logs failures of `call`. Returns NULL on failure. duda_main(). */
struct duda_log *log_new(struct service *s, const char *name, const char *call);

/* Adds a line. Returns 0, or -1: it is lost. Any thread; never waits for the disk. */
int log_vadd(struct duda_log *log, const char *format, va_list args) MK_PRINTF(2, 0);
int log_add(struct duda_log *log, const char *format, ...) MK_PRINTF(2, 3);

/* Hooks of features.c: start writing the service's logs, unless that was done; and close them. That may block. */
int log_start(struct service_worker *w);
void log_end(struct service *s);

#endif
