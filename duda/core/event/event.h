// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of the object `event` that the original API has, too (<duda/event.h>).
 */
#ifndef DUDA_CORE_EVENT_EVENT_H
#define DUDA_CORE_EVENT_EVENT_H

#include <duda/event.h>

/* As event->lookup(), mode(), delete(), signal(), create_signal_fd() and set_signal_callback(). */
struct duda_event_handler *event_lookup(int fd);
int event_set_mode(int fd, int mode, int behavior);
int event_delete(int fd);
int event_signal(uint64_t value);
int event_create_signal_fd(void);
int event_set_signal_callback(duda_signal_fn fn);

#endif
