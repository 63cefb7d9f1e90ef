// SPDX-License-Identifier: Apache-2.0
/*
 * A thread of the generator (thread.h).
 */
#include "thread.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "conn.h"
#include "tls.h"

enum {
    RAMP_CONNECTIONS = 100, /* opened at a time: a queue of listen(2) is short */
    RAMP_MS = 2,
    TICK_MS_MIN = 10,
    TICK_MS_MAX = 100,
    GIVE_UP_MS = 2000, /* without one connection */
};

#define NS 1000000000.0

/* ── connections ── */

static void fill_ready(struct loader *l)
{
    for (unsigned i = 0; i < l->ready_n; i++) {
        l->ready[i]->ready = false;
        conn_fill(l->ready[i]);
    }
    l->ready_n = 0;
}

static struct conn *take_idle(struct loader *l)
{
    struct conn *c = l->idle[l->idle_first];
    l->idle_first = (l->idle_first + 1) % l->conns_n;
    l->idle_n--;
    c->idle = false;
    return c;
}

static void start_due(struct loader *l, uint64_t now_ns)
{
    while (l->idle_n && l->due_ns <= now_ns && !l->stopped && !(l->has_quota && !l->quota)) {
        struct conn *c = take_idle(l);
        if (conn_has_room(c) && conn_start(c, now_ns))
            conn_add_idle(c);
    }
    if (l->due_ns <= now_ns) /* no connection is left for these */
        l->late_until = loader_count_starts(l, now_ns);
}

/* Counts what was under way at the end. */
static void count_unanswered(struct loader *l)
{
    for (unsigned i = 0; i < l->conns_n; i++)
        for (uint32_t k = 0; k < l->conns[i].n; k++) {
            const struct conn *c = &l->conns[i];
            l->counts.unanswered += c->flights[(c->first + k) % l->plan->pipeline].counted;
        }
    if (l->plan->rate <= 0 || l->count_from_ns == UINT64_MAX)
        return;
    uint64_t before = loader_count_starts(l, l->count_from_ns), due = loader_count_starts(l, l->end_ns);
    uint64_t from = before > l->starts ? before : l->starts, waiting = due > from ? due - from : 0;
    l->counts.unanswered += l->has_quota && waiting > l->quota ? l->quota : waiting;
}

static uint64_t sum_errors(const struct loader *l)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < ERRORS; i++)
        sum += l->counts.errors[i];
    return sum;
}

/* ── timers ── */

static void on_ramp(struct mk_timer *timer)
{
    struct loader *l = MK_CONTAINER_OF(timer, struct loader, ramp);
    uint64_t now_ns = loader_now_ns();
    for (unsigned i = 0; i < RAMP_CONNECTIONS && l->opened_n < l->conns_n; i++)
        conn_open(&l->conns[l->opened_n++], now_ns);
    if (l->opened_n < l->conns_n)
        mk_timer_arm(&l->loop, timer, RAMP_MS);
}

static uint32_t tick_ms(const struct loader *l)
{
    double ms = l->plan->timeout * 1000 / 20;
    return ms < TICK_MS_MIN ? TICK_MS_MIN : ms > TICK_MS_MAX ? TICK_MS_MAX : (uint32_t)ms;
}

static void on_tick(struct mk_timer *timer)
{
    struct loader *l = MK_CONTAINER_OF(timer, struct loader, tick);
    uint64_t now_ns = loader_now_ns();
    for (unsigned i = 0; i < l->opened_n && !l->stopped; i++)
        conn_check_timeout(&l->conns[i], now_ns);
    atomic_store_explicit(&l->seen_answers, l->counts.answers, memory_order_relaxed);
    atomic_store_explicit(&l->seen_errors, sum_errors(l), memory_order_relaxed);
    if (!l->counts.opened && l->first_error[0] && now_ns - l->start_ns > GIVE_UP_MS * 1000000ull)
        l->stopped = l->gave_up = true;
    mk_timer_arm(&l->loop, timer, tick_ms(l));
}

static void on_stop(struct mk_message *message)
{
    MK_CONTAINER_OF(message, struct loader, stop)->stopped = true;
}

void thread_stop(struct loader *l)
{
    mk_post(&l->loop, &l->stop);
}

/* ── the thread ── */

/* Waits for descriptors until the next intended start, to the nanosecond. */
static int wait_open_loop(struct mk_loop *loop, int timeout_ms)
{
    struct loader *l = MK_CONTAINER_OF(loop, struct loader, loop);
    uint64_t now_ns = loader_now_ns(), wait_ns = timeout_ms < 0 ? 1000000000u : (uint64_t)timeout_ms * 1000000u;
    if (l->idle_n && !(l->has_quota && !l->quota))
        wait_ns = l->due_ns <= now_ns ? 0 : l->due_ns - now_ns < wait_ns ? l->due_ns - now_ns : wait_ns;
    struct timespec ts = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
    int n = epoll_pwait2(loop->poll_fd, loop->batch, MK__LOOP_BATCH, &ts, NULL);
    return n < 0 ? -errno : n;
}

static struct mk__poller open_loop_poller;

static void run_loop(struct loader *l)
{
    int err = 0;
    bool is_open = l->plan->rate > 0;
    while (!l->stopped && err == 0) {
        err = mk__loop_turn(&l->loop);
        fill_ready(l);
        if (is_open)
            start_due(l, loader_now_ns());
    }
    if (err < 0)
        loader_note_error(l, ERROR_READ, true, "the loop cannot continue: %s", strerror(-err));
}

void *thread_run(void *loader)
{
    struct loader *l = loader;
    prctl(PR_SET_TIMERSLACK, 1ul); /* ns; by default sleeps last up to 50 us longer */
    mk_timer_arm(&l->loop, &l->tick, tick_ms(l));
    if (!l->plan->broadcast)
        loader_begin(l, l->start_ns); /* the first intended start counts */
    if (l->has_quota && !l->quota)
        l->stopped = true;
    on_ramp(&l->ramp);
    run_loop(l);
    l->end_ns = loader_now_ns();
    getrusage(RUSAGE_THREAD, &l->usage_to);
    count_unanswered(l);
    eventfd_write(l->event_fd, 1);
    return NULL;
}

static int allocate_conns(struct loader *l, struct mk_arena *arena)
{
    const struct plan *plan = l->plan;
    l->conns_n = plan->connections / plan->threads + (l->index < plan->connections % plan->threads);
    size_t flights_bytes = (size_t)l->conns_n * plan->pipeline * sizeof(struct flight);
    struct flight *flights = mk_arena_zalloc(arena, flights_bytes);
    l->conns = mk_arena_zalloc(arena, l->conns_n * sizeof(*l->conns));
    l->idle = mk_arena_zalloc(arena, l->conns_n * sizeof(struct conn *));
    l->ready = mk_arena_zalloc(arena, l->conns_n * sizeof(struct conn *));
    l->buffer = mk_arena_alloc(arena, LOAD_BUFFER_BYTES);
    if (!flights || !l->conns || !l->idle || !l->ready || !l->buffer)
        return -ENOMEM;
    for (unsigned i = 0; i < l->conns_n; i++)
        conn_init(&l->conns[i], l, flights + (size_t)i * plan->pipeline);
    return 0;
}

int thread_init(struct loader *l, const struct plan *plan, struct mk_arena *arena, unsigned index, uint64_t start_ns,
                int event_fd)
{
    memset(l, 0, sizeof(*l));
    l->plan = plan;
    l->index = index;
    l->event_fd = event_fd;
    l->start_ns = start_ns;
    l->count_from_ns = UINT64_MAX;
    l->interval_ns = plan->rate > 0 ? NS / plan->rate : 0;
    l->due_ns = loader_find_start_ns(l, 0);
    l->has_quota = plan->requests > 0;
    l->quota = l->wanted = plan->requests / plan->threads + (index < plan->requests % plan->threads);
    l->until_sample = 1;
    l->stop.fn = on_stop;
    picker_init(&l->picker, plan->seed, index, plan->threads);
    histogram_init(&l->latencies);
    mk_timer_init(&l->ramp, on_ramp);
    mk_timer_init(&l->tick, on_tick);
    mk_timer_init(&l->phase, loader_end_phase);
    open_loop_poller = mk__poller_epoll;
    open_loop_poller.wait = wait_open_loop;
    int err = allocate_conns(l, arena);
    const struct mk__poller *poller = plan->rate > 0 ? &open_loop_poller : &mk__poller_epoll;
    return err < 0 ? err : mk__loop_open(&l->loop, poller, &mk__clock_system, NULL);
}

void thread_release(struct loader *l)
{
    for (unsigned i = 0; i < l->conns_n; i++)
        conn_release(&l->conns[i]);
    tls_free_session(l->session);
    mk__loop_close(&l->loop);
}
