// SPDX-License-Identifier: Apache-2.0
/*
 * The object `worker`: threads of services, and functions that workers call before they serve (thread.h).
 */
#include "service/thread.h"

#include "common/api_error.h"
#include "common/cond.h"
#include "common/current.h"
#include "common/heap.h"
#include "crash/crash.h"
#include "crash/line.h"
#include "event/signals.h"
#include "log/message.h"
#include "objects.h"

#include <monkey/base/thread_start.h>

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, WAIT_MS = 1000 };

int thread_init(struct service *s)
{
    struct thread_set *set = threads_of(s);
    pthread_mutex_init(&set->lock, NULL);
    cond_init(&set->ended);
    set->stop_fd = -1;
    return 0;
}

void thread_release(struct service *s)
{
    struct thread_set *set = threads_of(s);
    assert(set->running == 0);
    if (set->stop_fd >= 0)
        close(set->stop_fd);
    pthread_cond_destroy(&set->ended);
    pthread_mutex_destroy(&set->lock);
}

int thread_add(struct service *s, void *(*fn)(void *arg), void *arg)
{
    struct thread_set *set = threads_of(s);
    if (set->n == THREADS_MAX)
        return -EAGAIN;
    if (set->stop_fd < 0)
        set->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (set->stop_fd < 0)
        return -errno;
    struct service_thread *t = mk_arena_zalloc(&s->arena, sizeof(*t));
    if (!t)
        return -ENOMEM;
    *t = (struct service_thread){.next = set->first, .service = s, .fn = fn, .arg = arg};
    set->first = t;
    set->n++;
    return 0;
}

/* ── a thread ── */

/* Runs at the end of a thread, also when pthread_exit() ends it. */
static void end_thread(void *ctx)
{
    struct service_thread *t = ctx;
    struct service *s = t->service;
    struct thread_set *set = threads_of(s);
    current_check_process();
    global_destroy_values(s, &t->values);
    global_use(NULL);
    current = (struct current){0};
    crash_leave_thread(t->crash);
    pthread_mutex_lock(&set->lock);
    void (*on_last)(struct service * s) = --set->running == 0 ? set->on_last : NULL;
    pthread_cond_signal(&set->ended);
    pthread_mutex_unlock(&set->lock);
    if (on_last)
        on_last(s);
}

static void *run_thread(void *ctx)
{
    struct service_thread *t = ctx;
    char name[16] = "duda: ";
    strncat(name, t->service->self.name.data, sizeof(name) - strlen(name) - 1);
    prctl(PR_SET_NAME, name);
    current = (struct current){.service = t->service, .thread = t};
    global_use(&t->values);
    t->crash = crash_enter_thread();
    pthread_cleanup_push(end_thread, t);
    if (global_make_values(t->service, &t->values) == 0)
        t->fn(t->arg);
    else
        message_log(MK_LOG_ERROR, "a thread has no memory for its values, and ends");
    pthread_cleanup_pop(1);
    return NULL;
}

/* ── threads that the service creates ── */

static void end_own_thread(void *ctx)
{
    end_thread(ctx);
    heap_free(ctx, sizeof(struct service_thread));
}

static void *run_own_thread(void *ctx)
{
    struct service_thread *t = ctx;
    void *result;
    current = (struct current){.service = t->service, .thread = t};
    global_use(&t->values);
    t->crash = crash_enter_thread();
    pthread_cleanup_push(end_own_thread, t);
    result = t->fn(t->arg);
    pthread_cleanup_pop(1);
    return result;
}

static void count_running(struct thread_set *set, int change)
{
    pthread_mutex_lock(&set->lock);
    set->running += (unsigned)change;
    pthread_mutex_unlock(&set->lock);
}

int thread_create_own(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg)
{
    struct service *s = current.service;
    if (!s)
        return pthread_create(ret, attr, fn, arg);
    struct service_thread *t = heap_zalloc(sizeof(*t));
    if (!t)
        return ENOMEM;
    *t = (struct service_thread){.service = s, .fn = fn, .arg = arg};
    count_running(threads_of(s), 1);
    int err = pthread_create(ret, attr, run_own_thread, t);
    if (err) {
        count_running(threads_of(s), -1);
        heap_free(t, sizeof(*t));
    }
    return err;
}

int thread_start_all(struct service_worker *w)
{
    struct service *s = w->service;
    struct thread_set *set = threads_of(s);
    pthread_mutex_lock(&set->lock);
    bool first = !set->started;
    set->started = true;
    for (struct service_thread *t = set->first; t && first; t = t->next) {
        int err = mk_thread_start(&t->id, 0, run_thread, t);
        t->started = err == 0;
        set->running += t->started;
        if (err < 0)
            message_log_of(s, MK_LOG_ERROR, "a thread cannot start: %s", strerror(-err));
    }
    pthread_mutex_unlock(&set->lock);
    return 0;
}

void thread_describe_crash(struct line *l, uintptr_t address)
{
    const struct service_thread *t = current.thread;
    (void)address;
    if (!t || !t->task)
        return;
    line_add(l, " in the task ");
    crash_add_address(l, t->task);
}

/* ── the end ── */

static unsigned wait_threads(struct thread_set *set)
{
    struct timespec until = cond_time_in(WAIT_MS);
    pthread_mutex_lock(&set->lock);
    while (set->running && pthread_cond_timedwait(&set->ended, &set->lock, &until) == 0)
        ;
    unsigned running = set->running;
    pthread_mutex_unlock(&set->lock);
    return running;
}

static void join_threads(struct thread_set *set)
{
    assert(set->running == 0);
    for (struct service_thread *t = set->first; t; t = t->next) {
        if (t->started)
            pthread_join(t->id, NULL);
        t->started = false;
    }
}

void thread_stop_all(struct service *s, struct mk_buf *left)
{
    struct thread_set *set = threads_of(s);
    atomic_store(&set->stopping, true);
    if (set->stop_fd >= 0)
        eventfd_write(set->stop_fd, 1);
    signals_end(signals_of(s));
    unsigned running = wait_threads(set);
    if (!running)
        join_threads(set);
    else if (!mk_buf_str(left).len)
        mk_buf_addf(left, "%u of its threads have not returned (see worker->stopping())", running);
}

bool thread_join_all(struct service *s)
{
    pthread_mutex_lock(&threads_of(s)->lock);
    bool all = threads_of(s)->running == 0;
    pthread_mutex_unlock(&threads_of(s)->lock);
    if (all)
        join_threads(threads_of(s));
    return all;
}

void thread_detach_all(struct service *s, void (*fn)(struct service *s))
{
    struct thread_set *set = threads_of(s);
    pthread_mutex_lock(&set->lock);
    for (struct service_thread *t = set->first; t; t = t->next) {
        if (t->started)
            pthread_detach(t->id);
    }
    bool all = set->running == 0;
    set->on_last = fn;
    pthread_mutex_unlock(&set->lock);
    if (all)
        fn(s);
}

/* ── the object `worker` ── */

static int spawn_worker(void *(*fn)(void *arg), void *arg)
{
    if (!phase_check(PHASE_MAIN, "worker->spawn()"))
        return -1;
    int err = fn ? thread_add(current.service, fn, arg) : -EINVAL;
    if (err < 0)
        message_log(MK_LOG_ERROR, "worker->spawn(): %s", strerror(-err));
    return err < 0 ? -1 : 0;
}

static int add_pre_loop(void (*fn)(void *data), void *data)
{
    if (!phase_check(PHASE_MAIN, "worker->pre_loop()") || !fn)
        return -1;
    struct service *s = current.service;
    struct pre_loop *row = mk_arena_zalloc(&s->arena, sizeof(*row)), **end = &pre_loops_of(s)->first;
    if (!row)
        return -1;
    *row = (struct pre_loop){NULL, fn, data};
    while (*end)
        end = &(*end)->next;
    *end = row;
    return 0;
}

int thread_run_pre_loops(struct service_worker *w)
{
    for (const struct pre_loop *row = pre_loops_of(w->service)->first; row; row = row->next)
        row->fn(row->data);
    return 0;
}

static bool is_stopping(void)
{
    return current.service && atomic_load(&threads_of(current.service)->stopping);
}

static int get_index(void)
{
    return current.worker ? (int)current.worker->index : -1;
}

static int count_workers(void)
{
    if (!phase_check(PHASE_ANY, "worker->count()"))
        return 0;
    struct service *s = current.service;
    int n = 0;
    pthread_mutex_lock(&s->lock);
    MK_LIST_EACH_ITEM(&s->workers, const struct service_worker, node, w)
        n += !w->ended;
    pthread_mutex_unlock(&s->lock);
    return n;
}

const struct duda_api_worker object_worker = {
    .spawn = spawn_worker,
    .pre_loop = add_pre_loop,
    .stopping = is_stopping,
    .index = get_index,
    .count = count_workers,
};
