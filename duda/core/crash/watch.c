// SPDX-License-Identifier: Apache-2.0
/*
 * The watchdog (watch.h).
 */
#include "crash/watch.h"

#include "common/cond.h"
#include "crash/crash.h"

#include <monkey/base/thread_start.h>
#include <monkey/base/time.h>
#include <monkey/log.h>

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

enum { TICK_MS = 250, BLOCKED_MS = 1000, IDLE_TICKS_MAX = 20, STACK_BYTES = 64 * 1024, TEXT_BYTES = 256 };

/* One for the process, because workers of several generations and servers share it. */
static struct {
    pthread_mutex_t life; /* held while a slot is added or removed, and the thread started or joined */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wakes; /* its clock is monotonic */
    struct mk_list slots; /* the thread runs as long as there is one */
    bool stops;
} watch = {.life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .slots = {&watch.slots, &watch.slots}};

_Atomic bool watch_sleeps;

/* ── incidents ── */

/*
 * At the start nothing waits for the signals that stop the server, which duda_main() has blocked: if it does not
 * return, this thread takes them, with their default action.
 * The slot is the only one, and its end ends the thread.
 */
static void unblock_stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGQUIT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void log_call(const struct watch_slot *slot)
{
    char text[TEXT_BYTES];
    snprintf(text, sizeof(text), "has not returned from %s for more than %d s: the server waits for it", slot->call,
             BLOCKED_MS / 1000);
    crash_log(MK_LOG_WARN, slot->service, text);
    if (!crash_log_is_open())
        unblock_stop_signals();
}

static void log_begin(const struct watch_slot *slot)
{
    char function[TEXT_BYTES] = "a callback";
    if (slot->call) {
        log_call(slot);
        return;
    }
    uintptr_t address = atomic_load_explicit(&slot->function, memory_order_relaxed);
    if (address)
        crash_describe(address, function, sizeof(function));
    if (slot->task_ms) {
        mk_log_warn("the service \"%s\" has a task that runs for more than %u.%u s: %s", slot->service,
                    slot->task_ms / 1000, slot->task_ms % 1000 / 100, function);
        return;
    }
    mk_log_warn("the service \"%s\" blocks worker %u for more than %d s in %s%s: move the work to a thread or job",
                slot->service, slot->worker, BLOCKED_MS / 1000,
                atomic_load_explicit(&slot->is_dthread, memory_order_relaxed) ? "the dthread " : "", function);
}

static void log_end(const struct watch_slot *slot, uint64_t now_ms)
{
    uint64_t ms = now_ms - slot->seen_ms;
    if (slot->call) {
        mk_log_warn("the service \"%s\" has returned from %s after %u.%u s", slot->service, slot->call,
                    (unsigned)(ms / 1000), (unsigned)(ms % 1000 / 100));
        return;
    }
    if (slot->task_ms) {
        mk_log_warn("the task of the service \"%s\" has ended after %u.%u s", slot->service, (unsigned)(ms / 1000),
                    (unsigned)(ms % 1000 / 100));
        return;
    }
    mk_log_warn("the service \"%s\" has blocked worker %u for %u.%u s, and it continues now", slot->service,
                slot->worker, (unsigned)(ms / 1000), (unsigned)(ms % 1000 / 100));
}

bool watch_check(struct watch_slot *slot, uint64_t now_ms)
{
    unsigned calls = atomic_load_explicit(&slot->calls, memory_order_relaxed);
    bool runs = calls % 2 == 1;
    if (calls == slot->seen_calls) {
        if (runs && !slot->is_logged && now_ms - slot->seen_ms >= (slot->task_ms ? slot->task_ms : BLOCKED_MS)) {
            slot->is_logged = true;
            log_begin(slot);
        }
        return runs;
    }
    if (slot->is_logged)
        log_end(slot, now_ms);
    slot->is_logged = false;
    slot->seen_calls = calls;
    slot->seen_ms = now_ms;
    return true;
}

static bool check_slots(void)
{
    uint64_t now_ms = mk_time_monotonic_ms();
    bool busy = false;
    MK_LIST_EACH_ITEM(&watch.slots, struct watch_slot, node, slot)
        busy |= watch_check(slot, now_ms);
    return busy;
}

/* ── the thread ── */

/* A call that begins while `watch_sleeps` becomes true may not see it: so one more tick comes before the sleep. */
static void *run_watchdog(void *unused)
{
    unsigned idle_ticks = 0;
    (void)unused;
    prctl(PR_SET_NAME, "monkey: duda");
    pthread_mutex_lock(&watch.lock);
    while (!watch.stops) {
        idle_ticks = check_slots() ? 0 : idle_ticks + 1;
        atomic_store(&watch_sleeps, idle_ticks >= IDLE_TICKS_MAX);
        if (idle_ticks <= IDLE_TICKS_MAX) {
            struct timespec until = cond_time_in(TICK_MS);
            pthread_cond_timedwait(&watch.wakes, &watch.lock, &until);
        }
        while (idle_ticks > IDLE_TICKS_MAX && atomic_load(&watch_sleeps) && !watch.stops)
            pthread_cond_wait(&watch.wakes, &watch.lock);
    }
    pthread_mutex_unlock(&watch.lock);
    return NULL;
}

void watch_wake(void)
{
    pthread_mutex_lock(&watch.lock);
    atomic_store(&watch_sleeps, false);
    pthread_cond_signal(&watch.wakes);
    pthread_mutex_unlock(&watch.lock);
}

static int start_watchdog(void)
{
    cond_init(&watch.wakes);
    watch.stops = false;
    atomic_store(&watch_sleeps, false);
    int err = mk_thread_start(&watch.thread, STACK_BYTES, run_watchdog, NULL);
    if (err < 0)
        pthread_cond_destroy(&watch.wakes);
    return err;
}

static void stop_watchdog(void)
{
    pthread_mutex_lock(&watch.lock);
    watch.stops = true;
    pthread_cond_signal(&watch.wakes);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    pthread_cond_destroy(&watch.wakes);
}

int watch_add(struct watch_slot *slot)
{
    assert(slot->service);
    pthread_mutex_lock(&watch.life);
    int err = mk_list_empty(&watch.slots) ? start_watchdog() : 0;
    pthread_mutex_lock(&watch.lock);
    if (err == 0)
        mk_list_add(&watch.slots, &slot->node);
    else
        mk_list_init(&slot->node);
    pthread_mutex_unlock(&watch.lock);
    pthread_mutex_unlock(&watch.life);
    return err;
}

/* The program may go to the background by fork() when no slot is left, and so no thread. */
void watch_remove(struct watch_slot *slot)
{
    pthread_mutex_lock(&watch.life);
    pthread_mutex_lock(&watch.lock);
    bool was_watched = !mk_list_empty(&slot->node);
    mk_list_del(&slot->node);
    if (slot->is_logged)
        log_end(slot, mk_time_monotonic_ms());
    bool is_last = was_watched && mk_list_empty(&watch.slots);
    pthread_mutex_unlock(&watch.lock);
    if (is_last)
        stop_watchdog();
    pthread_mutex_unlock(&watch.life);
}
