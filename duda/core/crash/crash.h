// SPDX-License-Identifier: Apache-2.0
/*
 * Logs a crash inside a service with its name and a stack trace: SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT in
 * duda_main(), in a worker, or in a thread of the service's own. Then the signal has its default effect, so that the
 * supervisor starts the server again. Other crashes are not touched.
 */
#ifndef DUDA_CORE_CRASH_CRASH_H
#define DUDA_CORE_CRASH_CRASH_H

#include <monkey/log.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line;

/* Handles the signals that have their default action; sanitizers keep theirs. Call crash_stop() at the end. */
void crash_start(void);
void crash_stop(void);

/* A worker has started: the log is open. Before that, crashes are written to stderr, too. */
void crash_use_log(void);
bool crash_log_is_open(void);

/* Returns the name of the service whose function has called this one, by the stack; NULL: there is none. */
const char *crash_find_caller(void);
/* Writes where that function calls, as crash_describe(). Returns false: there is none. */
bool crash_describe_caller(char *to, size_t size);
/* Logs `the service "NAME" TEXT`; to stderr, too, before the log is open. Async-signal-safe. */
void crash_log(enum mk_log_level level, const char *service, const char *text);

/* Appends the same as crash_describe(), in a handler. */
void crash_add_address(struct line *l, uintptr_t address);

/* Writes "NAME.duda+0x1234 (function, file:line)", of what is known, with a NUL. Not in a handler of a signal. */
void crash_describe(uintptr_t address, char *to, size_t size);

/* A thread that runs code of services: it has a stack for the handler, so that its own overflow is logged, too.
 */
struct crash_thread;

/*
 * Prepares the calling thread: its stack, and its mask, because threads of the server block all signals. Threads that a
 * service creates need it only for overflows of their stacks.
 * Returns NULL if the thread has a stack already (a sanitizer's), or without memory. Each call needs a
 * crash_leave_thread(), in the same thread or after its end.
 */
struct crash_thread *crash_enter_thread(void);
void crash_leave_thread(struct crash_thread *thread); /* may be NULL */

/* ── guard.c: services that leave a callback by another way than a return ── */

/* Installs the functions that the C library calls; once for the process. */
void guard_start(void);
/* The calling thread of the server runs code of services from now on. */
void guard_enter_thread(void);

#endif
