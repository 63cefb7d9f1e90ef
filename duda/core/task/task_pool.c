// SPDX-License-Identifier: Apache-2.0
/*
 * Runs tasks of services on threads (task_pool.h).
 */
#include "task/task_pool.h"

#include "common/cond.h"
#include "common/current.h"
#include "common/heap.h"
#include "crash/crash.h"
#include "crash/watch.h"
#include "log/message.h"
#include "service/global.h"
#include "service/inbox.h"

#include <monkey/base/thread_start.h>

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>

enum { WAIT_MS = 1000, STACK_BYTES = 1 << 20 };

enum thread_state { THREAD_NONE, THREAD_RUNS, THREAD_ENDED };

struct task_thread {
    struct service_thread base;
    struct task_pool *pool;
    struct watch_slot watch;
    enum thread_state state; /* under the lock of the pool */
    struct task *task;       /* of the thread itself; NULL: none */
};

struct task *task_pool_running(void)
{
    struct service_thread *t = current.thread;
    return t && t->is_of_pool ? MK_CONTAINER_OF(t, struct task_thread, base)->task : NULL;
}

/* ── a thread ── */

/* Gives a task that has ended to its worker, or frees it. With the lock, which it releases meanwhile. */
static void return_task(struct task_pool *pool, struct task *t)
{
    assert(t->state == TASK_RUNNING);
    t->state = TASK_ENDED;
    task_queue_finish(&pool->queue, &t->item);
    pthread_cond_broadcast(&pool->ended);
    if (t->worker) {
        struct mk_list *ended = &tasks_of(t->worker)->ended;
        if (mk_list_empty(ended))
            eventfd_write(inbox_of(t->worker)->event.fd, 1);
        mk_list_add(ended, &t->item.node);
        return;
    }
    pthread_mutex_unlock(&pool->lock);
    task_drop(t);
    pthread_mutex_lock(&pool->lock);
}

static void run_task(struct task_thread *thread, struct task *t)
{
    assert(t->state == TASK_QUEUED && !thread->task);
    struct task_pool *pool = thread->pool;
    t->state = TASK_RUNNING;
    thread->task = t;
    thread->base.task = (uintptr_t)t->kind.fn;
    pthread_mutex_unlock(&pool->lock);
    mk_counter_add(pool->counts.queued, NULL, -1);
    mk_counter_add(pool->counts.running, NULL, 1);
    watch_begin(&thread->watch);
    atomic_store_explicit(&thread->watch.function, (uintptr_t)t->kind.fn, memory_order_relaxed);
    t->kind.fn(t->data);
    current_check_process();
    watch_end(&thread->watch);
    mk_counter_add(pool->counts.running, NULL, -1);
    mk_counter_add(pool->counts.done, NULL, 1);
    pthread_mutex_lock(&pool->lock);
    thread->task = NULL;
    thread->base.task = 0;
    return_task(pool, t);
}

/* Waits for a task, with the lock. Returns NULL if the thread is to end. */
static struct task *wait_for_task(struct task_pool *pool)
{
    struct timespec until = cond_time_in(pool->conf.idle_ms);
    struct task_item *item;
    int err = 0;
    while (!(item = task_queue_take(&pool->queue)) && !pool->stopping && err != ETIMEDOUT) {
        pool->idle++;
        err = pthread_cond_timedwait(&pool->wakes, &pool->lock, &until);
        pool->idle--;
    }
    return item ? MK_CONTAINER_OF(item, struct task, item) : NULL;
}

static void serve_tasks(struct task_thread *thread)
{
    struct task *t;
    pthread_mutex_lock(&thread->pool->lock);
    while ((t = wait_for_task(thread->pool)))
        run_task(thread, t);
    pthread_mutex_unlock(&thread->pool->lock);
}

static void enter_thread(struct task_thread *thread)
{
    struct service *s = thread->pool->service;
    current = (struct current){.service = s, .thread = &thread->base};
    global_use(&thread->base.values);
    thread->base.crash = crash_enter_thread();
    guard_enter_thread();
    watch_add(&thread->watch);
    if (global_make_values(s, &thread->base.values) < 0)
        message_log(MK_LOG_ERROR, "a thread for tasks has no memory for its values");
}

static void leave_thread(struct task_thread *thread)
{
    global_destroy_values(thread->pool->service, &thread->base.values);
    global_use(NULL);
    watch_remove(&thread->watch);
    current = (struct current){0};
    crash_leave_thread(thread->base.crash);
}

/* Returns false if a task has come meanwhile, which finds no idle thread. */
static bool end_thread(struct task_thread *thread)
{
    struct task_pool *pool = thread->pool;
    struct service *s = pool->service;
    pthread_mutex_lock(&pool->lock);
    if (pool->queue.n_ready && !pool->stopping) {
        pthread_mutex_unlock(&pool->lock);
        return false;
    }
    thread->state = THREAD_ENDED;
    assert(pool->threads > 0);
    pool->threads--;
    void (*on_last)(struct service * s) = pool->threads == 0 ? pool->on_last : NULL;
    pthread_cond_broadcast(&pool->ended);
    pthread_mutex_unlock(&pool->lock);
    if (on_last)
        on_last(s);
    return true;
}

static void *run_thread(void *ctx)
{
    struct task_thread *thread = ctx;
    char name[16] = "duda: ";
    strncat(name, thread->pool->service->self.name.data, sizeof(name) - strlen(name) - 1);
    prctl(PR_SET_NAME, name);
    do {
        enter_thread(thread);
        serve_tasks(thread);
        leave_thread(thread);
    } while (!end_thread(thread));
    return NULL;
}

/* ── starting threads; with the lock ── */

static void join_thread(struct task_thread *thread)
{
    assert(thread->state != THREAD_RUNS);
    if (thread->state == THREAD_ENDED)
        pthread_join(thread->base.id, NULL);
    thread->state = THREAD_NONE;
}

static struct task_thread *find_free_thread(struct task_pool *pool)
{
    for (unsigned i = 0; i < pool->conf.threads; i++) {
        if (pool->items[i].state != THREAD_RUNS)
            return &pool->items[i];
    }
    return NULL;
}

/* Starts one more thread. Returns 0 or -errno. */
static int start_thread(struct task_pool *pool)
{
    struct task_thread *thread = find_free_thread(pool);
    if (!thread)
        return -EAGAIN;
    join_thread(thread); /* it has left the lock for the last time */
    *thread = (struct task_thread){
        .base = {.service = pool->service, .is_of_pool = true},
        .pool = pool,
        .watch = {.service = pool->service->self.name.data, .task_ms = pool->conf.slow_ms},
    };
    int err = mk_thread_start(&thread->base.id, STACK_BYTES, run_thread, thread);
    if (err < 0)
        return err;
    thread->state = THREAD_RUNS;
    pool->threads++;
    return 0;
}

/* Has a thread for the tasks that are ready. Returns 0, or -errno: there is none. */
static int provide_thread(struct task_pool *pool)
{
    bool wants = pool->queue.n_ready > pool->idle && pool->threads < pool->conf.threads;
    int err = wants ? start_thread(pool) : 0;
    return pool->threads ? 0 : err;
}

int task_pool_add(struct task_pool *pool, struct task *t)
{
    pthread_mutex_lock(&pool->lock);
    int err = pool->stopping ? -ESHUTDOWN : task_queue_add(&pool->queue, &t->item);
    if (err == 0) {
        err = provide_thread(pool);
        if (err < 0)
            task_queue_remove(&pool->queue, &t->item);
    }
    bool wakes = err == 0 && t->item.is_ready && pool->idle;
    pthread_mutex_unlock(&pool->lock);
    if (wakes)
        pthread_cond_signal(&pool->wakes);
    return err;
}

bool task_pool_remove(struct task_pool *pool, struct task *t)
{
    pthread_mutex_lock(&pool->lock);
    bool was_queued = t->state == TASK_QUEUED;
    if (was_queued) {
        task_queue_remove(&pool->queue, &t->item);
        t->state = TASK_REMOVED;
    }
    bool is_removed = t->state == TASK_REMOVED;
    if (pool->queue.n_ready) /* the next one of its serial queue */
        pthread_cond_signal(&pool->wakes);
    pthread_mutex_unlock(&pool->lock);
    if (was_queued)
        mk_counter_add(pool->counts.queued, NULL, -1);
    return is_removed;
}

/* ── the pool ── */

static struct duda_task_conf get_conf(const struct service *s)
{
    struct duda_task_conf conf = task_service_of(s)->conf ? *task_service_of(s)->conf : (struct duda_task_conf){0};
    conf.threads = conf.threads ? conf.threads : 8;
    conf.queue = conf.queue ? conf.queue : 4096;
    conf.idle_ms = conf.idle_ms ? conf.idle_ms : 10000;
    conf.slow_ms = conf.slow_ms ? conf.slow_ms : 30000;
    return conf;
}

static struct task_pool *new_pool(struct service *s)
{
    struct duda_task_conf conf = get_conf(s);
    struct task_pool *pool = heap_zalloc(sizeof(*pool));
    struct task_thread *items = pool ? heap_zalloc(conf.threads * sizeof(*items)) : NULL;
    if (!items) {
        heap_free(pool, sizeof(*pool));
        return NULL;
    }
    pool->service = s;
    pool->conf = conf;
    pool->items = items;
    task_queue_init(&pool->queue, conf.queue + conf.threads);
    counts_open_tasks(s, &pool->counts);
    pthread_mutex_init(&pool->lock, NULL);
    cond_init(&pool->wakes);
    cond_init(&pool->ended);
    return pool;
}

struct task_pool *task_pool_get(struct service *s)
{
    struct task_pool *pool = atomic_load_explicit(&task_service_of(s)->pool, memory_order_acquire);
    if (pool)
        return pool;
    pthread_mutex_lock(&s->lock);
    pool = atomic_load_explicit(&task_service_of(s)->pool, memory_order_relaxed);
    if (!pool)
        pool = new_pool(s);
    atomic_store_explicit(&task_service_of(s)->pool, pool, memory_order_release);
    pthread_mutex_unlock(&s->lock);
    return pool;
}

void task_pool_release(struct service *s)
{
    struct task_pool *pool = atomic_load(&task_service_of(s)->pool);
    if (!pool)
        return;
    task_queue_release(&pool->queue);
    counts_close_tasks(&pool->counts);
    pthread_cond_destroy(&pool->ended);
    pthread_cond_destroy(&pool->wakes);
    pthread_mutex_destroy(&pool->lock);
    heap_free(pool->items, pool->conf.threads * sizeof(*pool->items));
    heap_free(pool, sizeof(*pool));
    atomic_store(&task_service_of(s)->pool, NULL);
}

struct duda_serial_queue *task_pool_new_serial(struct service *s)
{
    struct task_pool *pool = task_pool_get(s);
    if (!pool)
        return NULL;
    pthread_mutex_lock(&pool->lock);
    struct duda_serial_queue *serial = task_queue_new_serial(&pool->queue);
    pthread_mutex_unlock(&pool->lock);
    return serial;
}

void task_pool_free_serial(struct duda_serial_queue *serial)
{
    struct task_pool *pool = MK_CONTAINER_OF(serial->queue, struct task_pool, queue);
    pthread_mutex_lock(&pool->lock);
    task_queue_free_serial(serial);
    pthread_mutex_unlock(&pool->lock);
}

/* ── the end ── */

static void join_all(struct task_pool *pool)
{
    for (unsigned i = 0; i < pool->conf.threads; i++)
        join_thread(&pool->items[i]);
}

void task_pool_stop(struct service *s, struct mk_buf *left)
{
    struct task_pool *pool = atomic_load(&task_service_of(s)->pool);
    if (!pool)
        return;
    struct timespec until = cond_time_in(WAIT_MS);
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->wakes);
    while (pool->threads && pthread_cond_timedwait(&pool->ended, &pool->lock, &until) == 0)
        ;
    unsigned threads = pool->threads;
    pthread_mutex_unlock(&pool->lock);
    if (!threads)
        join_all(pool);
    else if (!mk_buf_str(left).len)
        mk_buf_addf(left, "tasks of it run (see task->stopping())");
}

bool task_pool_join(struct service *s)
{
    struct task_pool *pool = atomic_load(&task_service_of(s)->pool);
    if (!pool)
        return true;
    pthread_mutex_lock(&pool->lock);
    bool all = pool->threads == 0;
    pthread_mutex_unlock(&pool->lock);
    if (all)
        join_all(pool);
    return all;
}

void task_pool_detach(struct service *s, void (*fn)(struct service *s))
{
    struct task_pool *pool = atomic_load(&task_service_of(s)->pool);
    bool all = true;
    if (pool) {
        pthread_mutex_lock(&pool->lock);
        for (unsigned i = 0; i < pool->conf.threads; i++) {
            if (pool->items[i].state != THREAD_NONE)
                pthread_detach(pool->items[i].base.id);
        }
        all = pool->threads == 0;
        pool->on_last = fn;
        pthread_mutex_unlock(&pool->lock);
    }
    if (all)
        fn(s);
}
