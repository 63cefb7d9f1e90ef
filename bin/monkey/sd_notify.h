// SPDX-License-Identifier: Apache-2.0
/*
 * Notifications for a service manager: sd_notify(3), to NOTIFY_SOCKET. They never block; a lost one is no error.
 */
#ifndef MONKEY_SD_NOTIFY_H
#define MONKEY_SD_NOTIFY_H

#include "options.h"

/* Reads NOTIFY_SOCKET and removes it from the environment. */
void sd_notify_init(void);
/* Sends lines such as "READY=1\nSTATUS=...". */
void sd_notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sends RELOADING=1 with the monotonic time that the protocol requires. */
void sd_notify_reloading(void);
/* Returns "NOTIFY_SOCKET=..." for an environment, or NULL if it was not set. */
char *sd_notify_variable(void);

#endif
