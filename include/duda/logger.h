// SPDX-License-Identifier: Apache-2.0
/*
 * The object `logger`: log files of the service, in [WEB_SERVICE] LogDir.
 *
 *     static duda_logger_t access;
 *
 *     int duda_main(void) { return logger->create(&access, "access.log"); }
 *
 *     logger->print(&access, "%s has logged in", name);
 *
 *     2026-11-20T05:04:03.123Z alice has logged in
 *
 * A thread of the framework writes the lines, within a second. The files are opened again when the server's logs are
 * (SIGUSR1): rename them before.
 */
#ifndef DUDA_LOGGER_H
#define DUDA_LOGGER_H

#include "types.h"

struct duda_log;

/* A log; must stay in place as long as the service. */
typedef struct duda_logger {
    int enabled;          /* 0: print() does nothing. Set it at any time */
    struct duda_log *log; /* the framework's */
} duda_logger_t;

struct duda_api_logger {
    /*
     * Opens the file `name` of LogDir, and enables the log. Returns 0, or -1, which is logged: LogDir is not set, the
     * name has a slash, the file cannot be opened, or the service has 64 logs. Only in duda_main().
     */
    int (*create)(duda_logger_t *logger, const char *name);
    /*
     * Appends a line: the time, a blank, and the text, of which 4,000 bytes at most are kept. Control characters are
     * written as \xNN, and a newline at the end is left out. Never waits for the disk: if 256 KB wait to be written,
     * the line is lost, and the number of lost lines is written as soon as there is room. Returns 0, or -1: lost, or
     * create() was not called. Any thread.
     */
    int (*print)(duda_logger_t *logger, const char *format, ...) DUDA_PRINTF(2, 3);
};

DUDA_OBJECT(struct duda_api_logger, logger)

#endif
