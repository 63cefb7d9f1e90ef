// SPDX-License-Identifier: Apache-2.0
/*
 * Starts threads (<monkey/base/thread_start.h>).
 */
#include <monkey/base/thread_start.h>

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

/* The thread's own faults: a handler of the program, or of a sanitizer, shall see them. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

/* Gives the thread the processors of the process where the calling thread is bound to some of them. */
static void set_cpus(pthread_attr_t *attr)
{
    cpu_set_t all, own;
    if (sched_getaffinity(getpid(), sizeof(all), &all) == 0 && /* they fail with very many processors */
        sched_getaffinity(0, sizeof(own), &own) == 0 && !CPU_EQUAL(&all, &own))
        pthread_attr_setaffinity_np(attr, sizeof(all), &all);
}

static void init_attr(pthread_attr_t *attr, size_t stack_bytes, bool is_detached)
{
    pthread_attr_init(attr);
    if (stack_bytes)
        pthread_attr_setstacksize(attr, stack_bytes);
    if (is_detached)
        pthread_attr_setdetachstate(attr, PTHREAD_CREATE_DETACHED);
    set_cpus(attr);
}

int mk_thread_start(pthread_t *ret, size_t stack_bytes, void *(*fn)(void *ctx), void *ctx)
{
    pthread_t id;
    pthread_attr_t attr;
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (unsigned i = 0; i < MK_COUNT_OF(faults); i++)
        sigdelset(&blocked, faults[i]);
    init_attr(&attr, stack_bytes, !ret);
    pthread_sigmask(SIG_SETMASK, &blocked, &before); /* the new thread has the mask from its beginning */
    int err = pthread_create(ret ? ret : &id, &attr, fn, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -err;
}
