// SPDX-License-Identifier: Apache-2.0
/*
 * The object `worker`: threads of a service's own (spawn()), which start with the first worker of the service, and are
 * asked to return when it ends; and functions that each worker calls before it serves (pre_loop()).
 */
#ifndef DUDA_CORE_SERVICE_THREAD_H
#define DUDA_CORE_SERVICE_THREAD_H

#include "service/global.h"
#include "service/service.h"

#include <pthread.h>
#include <stdatomic.h>

struct crash_thread;
struct service;

struct service_thread {
    struct service_thread *next;
    struct service *service;
    void *(*fn)(void *arg);
    void *arg;
    pthread_t id;
    struct crash_thread *crash; /* may be NULL */
    bool started;
    bool is_of_pool;   /* it is that of a struct task_thread (task_pool.c) */
    uintptr_t task;    /* the function of the task that it runs now, for the log of a crash; or 0 */
    bool end_notified; /* event->loop_wait() has returned -1 because the service ends; of the thread itself */
    struct global_values values;
};

struct thread_set {
    struct service_thread *first;
    unsigned n;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended; /* `running` has become less */
    unsigned running;
    bool started;
    void (*on_last)(struct service *s); /* called by the last thread that ends, which nothing joins; or NULL */
    atomic_bool stopping;
    int stop_fd; /* an eventfd that is readable once `stopping` is true; -1: not made */
};

/* A function that each worker calls before it serves (worker->pre_loop()). */
struct pre_loop {
    struct pre_loop *next;
    void (*fn)(void *data);
    void *data;
};

/* Of a service; grows in duda_main() only. */
struct pre_loops {
    struct pre_loop *first;
};

FEATURE_SLOT(pre_loops_of, struct pre_loops, service, FEATURE_PRE_LOOPS)
FEATURE_SLOT(threads_of, struct thread_set, service, FEATURE_THREADS)

/* Adds a thread, in duda_main(). Returns 0 or -errno. */
int thread_add(struct service *s, void *(*fn)(void *arg), void *arg);
/*
 * Creates a thread as pthread_create() does, which may use the objects of the service whose code runs: services of the
 * original API have such threads. The service is not unloaded before it has ended. Returns 0 or an error number.
 */
int thread_create_own(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg);
/* ── hooks of features.c ── */

int thread_init(struct service *s);
void thread_release(struct service *s);
/* Starts the threads, unless another worker has. Logs failures. Returns 0. */
int thread_start_all(struct service_worker *w);
void thread_stop_all(struct service *s, struct mk_buf *left);
bool thread_join_all(struct service *s);
void thread_detach_all(struct service *s, void (*fn)(struct service *s));
/* Calls the functions of worker->pre_loop(). Returns 0. */
int thread_run_pre_loops(struct service_worker *w);
/* Appends the task that this thread runs. */
void thread_describe_crash(struct line *l, uintptr_t address);

#endif
