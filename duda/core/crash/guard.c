// SPDX-License-Identifier: Apache-2.0
/*
 * Finds services that leave a callback by another way than a return, by functions that the C library calls:
 *
 *     exit()           would end the server with a status that says that all is well
 *     pthread_exit()   would end a thread of the server, whose clients then wait forever
 *     fork()           a child that returns would serve the clients a second time
 *
 * The first two are logged and become a crash (crash.h), so that the supervisor starts the server again; the child
 * ends.
 */
#include "crash/crash.h"

#include "common/current.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool current_is_child;

static pthread_key_t thread_end;

static const char *get_name(void)
{
    return current.service ? current.service->self.name.data : NULL;
}

/* Is called by exit(), in the thread that has called it; that may be one which the framework does not know. */
static void on_process_end(int status, void *ctx)
{
    char text[96];
    (void)ctx;
    const char *name = get_name();
    if (!name)
        name = crash_find_caller();
    if (!name || current_is_child)
        return;
    snprintf(text, sizeof(text), "has called exit(%d), which would end the server: a service must return", status);
    crash_log(MK_LOG_ERROR, name, text);
    abort();
}

/* Is called by pthread_exit(), and when a thread of the server ends as it should. */
static void on_thread_end(void *value)
{
    (void)value;
    if (!current.service)
        return;
    crash_log(MK_LOG_ERROR, get_name(), "has called pthread_exit() in a thread of the server: a callback must return");
    abort();
}

static void on_fork(void)
{
    current_is_child = current.service;
}

void current_end_child(void)
{
    crash_log(MK_LOG_ERROR, get_name(),
              "has returned in a process of fork(), which ends: the child must call execve() or _exit()");
    _exit(1);
}

static void install_handlers(void)
{
    on_exit(on_process_end, NULL);
    pthread_key_create(&thread_end, on_thread_end);
    pthread_atfork(NULL, NULL, on_fork);
}

/* The plugin is never unmapped (duda.cmake), so that the functions stay where they are. */
void guard_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_handlers);
}

void guard_enter_thread(void)
{
    guard_start();
    pthread_setspecific(thread_end, &thread_end);
}
