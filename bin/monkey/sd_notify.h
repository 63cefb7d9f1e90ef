// SPDX-License-Identifier: Apache-2.0
/*
 * What a service manager wants to know: sd_notify(3), to NOTIFY_SOCKET. Nothing of it blocks, and nobody minds if it is
 * lost.
 */
#ifndef MONKEY_SD_NOTIFY_H
#define MONKEY_SD_NOTIFY_H

#include "options.h"

/* Takes the variable out of the environment. */
void sd_notify_init(void);
/* Sends lines such as "READY=1\nSTATUS=...". */
void sd_notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* With the time that belongs to it. */
void sd_notify_reloading(void);
/* "NOTIFY_SOCKET=...", or NULL. */
char *sd_notify_variable(void);

#endif
