// SPDX-License-Identifier: Apache-2.0
/*
 * Giving connections to workers (server/fair.h). All of it runs in the process context's thread, but for what prepares
 * a step.
 */
#include "server/fair.h"

#include "base/log.h"
#include "http/conn.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EDGES = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, PLACES_MAX = 1 << 24, ROOM_AT_ONCE = 16 };

/* ── arrivals ── */

static size_t places_bytes(uint32_t n)
{
    return n * sizeof(struct mk__arrival);
}

int mk__arrivals_open(struct mk__arrivals *a)
{
    struct rlimit limit;
    if (a->places)
        return 0;
    uint32_t n = PLACES_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < n)
        n = (uint32_t)limit.rlim_max;
    void *places =
        mmap(NULL, places_bytes(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (places == MAP_FAILED)
        return -ENOMEM;
    *a = (struct mk__arrivals){places, n};
    return 0;
}

void mk__arrivals_close(struct mk__arrivals *a)
{
    if (a->places)
        munmap(a->places, places_bytes(a->n));
    *a = (struct mk__arrivals){0};
}

/* ── one connection ── */

unsigned mk__fair_pick(const uint32_t *loads, unsigned n, unsigned last)
{
    unsigned best = (last + 1) % n;
    for (unsigned i = 2; i <= n; i++) {
        unsigned k = (last + i) % n;
        if (loads[k] < loads[best])
            best = k;
    }
    return best;
}

/* Workers without memory come last. Says whether there is another one. */
static bool pick(struct mk__fair *f, struct mk__worker **ret_worker)
{
    MK_UNINITIALIZED uint32_t loads[MK__FAIR_WORKERS_MAX];
    for (unsigned i = 0; i < f->n_workers; i++) {
        const struct mk__feed *feed = &f->workers[i]->feed;
        loads[i] = mk__feed_load(feed) | (feed->starved ? 1u << 31 : 0);
    }
    f->last = mk__fair_pick(loads, f->n_workers, f->last);
    *ret_worker = f->workers[f->last];
    return !(loads[f->last] >> 31);
}

static uint32_t next_sequence(struct mk__fair *f)
{
    if (++f->sequence == 0)
        f->sequence = 1;
    return f->sequence;
}

static int give(struct mk__fair *f, struct mk__worker *w, const struct mk__listening *listening, int fd)
{
    uint32_t sequence = next_sequence(f);
    if ((uint32_t)fd >= f->arrivals->n)
        return -EMFILE;
    struct mk__arrival *place = &f->arrivals->places[fd];
    atomic_store_explicit(&place->listening, listening, memory_order_relaxed);
    atomic_store_explicit(&place->sequence, sequence, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->feed.given, 1, memory_order_relaxed); /* it may be gone before we look again */
    struct epoll_event wanted = {.events = EDGES, .data.u64 = mk__guest_tag(fd, sequence)};
    if (epoll_ctl(w->loop.poll_fd, EPOLL_CTL_ADD, fd, &wanted) == 0)
        return 0;
    int err = -errno;
    atomic_fetch_sub_explicit(&w->feed.given, 1, memory_order_relaxed);
    return err;
}

/* No queue would take it: the system is short of memory, or of what a user may watch. */
static int lose(struct mk__fair *f, const struct mk__listening *listening, int fd, int err)
{
    f->lost++;
    if (mk__log_due(&f->complained_ms, mk_loop_now_ms(f->loop)))
        mk_log_warn("cannot give a connection to a worker: %s; %u were closed so far", strerror(-err), f->lost);
    mk__capacity_leave(f->capacity);
    if (!mk__capacity_resists(f->capacity)) {
        mk__capacity_refuse(f->capacity, listening, fd);
        return 0;
    }
    close(fd);
    return -ENOMEM;
}

static int take_accepted(struct mk__acceptor *a, int fd)
{
    struct mk__fair *f = a->ctx;
    struct mk__worker *w;
    bool is_fed = pick(f, &w);
    int err = give(f, w, a->listening, fd);
    if (err < 0)
        return lose(f, a->listening, fd, err);
    if (is_fed)
        return 0;
    for (unsigned i = 0; i < f->n_workers; i++)
        f->workers[i]->feed.starved = false; /* they are asked again after a moment */
    return -ENOMEM;
}

/* ── room ── */

static void on_freed(struct mk_message *message)
{
    struct mk__worker *w = MK_OWNER(message, struct mk__worker, feed.freed);
    struct mk__fair *f = w->feed.owner;
    w->feed.asked = false;
    for (unsigned i = 0; i < f->acceptors.n; i++)
        mk__acceptor_retry(f->acceptors.items[i]);
}

/* In the worker's thread. */
static void on_ask(struct mk_message *message)
{
    struct mk__worker *w = MK_OWNER(message, struct mk__worker, feed.ask);
    struct mk__fair *f = w->feed.owner;
    unsigned closed = mk__conn_close_idle(&w->http, w->feed.share); /* f->workers may be others by now */
    if (mk__capacity_made_room(f->capacity, closed) > 0)
        mk_post(f->loop, &w->feed.freed);
    else
        w->feed.asked = false; /* it may have more to give next time */
}

/* The room is made later, if there is some to make: whoever made it calls back. */
static bool make_room(struct mk__acceptor *a)
{
    struct mk__fair *f = a->ctx;
    for (unsigned i = 0; i < f->n_workers; i++) {
        struct mk__feed *feed = &f->workers[i]->feed;
        if (mk__feed_load(feed) == 0 || atomic_exchange(&feed->asked, true))
            continue;
        feed->owner = f;
        feed->share = (ROOM_AT_ONCE + f->n_workers - 1) / f->n_workers;
        feed->ask.fn = on_ask;
        feed->freed.fn = on_freed;
        mk_post(&f->workers[i]->loop, &feed->ask);
    }
    return false;
}

static const struct mk__acceptor_calls calls = {take_accepted, make_room};

static int open_acceptor(void *ctx, struct mk__acceptor *a)
{
    struct mk__fair *f = ctx;
    a->capacity = f->capacity;
    return mk__acceptor_open(a, f->loop, a->event.fd, a->listening->shared, &calls, f);
}

/* The workers do not know a listener of the next settings before they have adopted these: mk__fair_open_fresh(). */
static int open_known(void *ctx, struct mk__acceptor *a)
{
    return a->listening->fresh ? 0 : open_acceptor(ctx, a);
}

/* ── the end ── */

static void drain(struct mk__fair *f)
{
    mk__acceptors_close(&f->acceptors);
    for (unsigned i = 0; i < f->n_workers; i++)
        mk_post(&f->workers[i]->loop, &f->workers[i]->feed.part);
}

static void on_delay_timer(struct mk_timer *timer)
{
    drain(MK_OWNER(timer, struct mk__fair, delay_timer));
}

static void on_drain(struct mk_message *message)
{
    struct mk__fair *f = MK_OWNER(message, struct mk__fair, drain_message);
    if (f->delay_ms)
        mk_timer_arm(f->loop, &f->delay_timer, f->delay_ms);
    else
        drain(f);
}

void mk__fair_drain(struct mk__fair *f, uint32_t delay_ms)
{
    f->delay_ms = delay_ms;
    f->drain_message.fn = on_drain;
    mk_post(f->loop, &f->drain_message);
}

/* ── steps ── */

int mk__fair_prepare(struct mk__fair_step *step, struct mk__fair *f, const struct mk__sockets *sockets, unsigned n)
{
    *step = (struct mk__fair_step){.fair = f, .n_workers = n};
    if (!n)
        return 0;
    step->workers = mk_account_alloc(NULL, n * sizeof(struct mk__worker *));
    int err = step->workers ? mk__arrivals_open(f->arrivals) : -ENOMEM;
    return err == 0 ? mk__acceptors_make(&step->acceptors, sockets, 0, 1) : err;
}

void mk__fair_free(struct mk__fair_step *step)
{
    mk__acceptors_free(&step->acceptors);
    mk_account_free(NULL, step->workers, 0);
    step->workers = NULL;
}

static void swap_workers(struct mk__fair *f, struct mk__fair_step *step)
{
    struct mk__worker **workers = f->workers;
    unsigned n = f->n_workers;
    f->workers = step->workers;
    f->n_workers = step->n_workers;
    step->workers = workers;
    step->n_workers = n;
}

static void take_step(struct mk_message *message)
{
    struct mk__fair_step *step = MK_OWNER(message, struct mk__fair_step, message);
    struct mk__fair *f = step->fair;
    bool goes_on = step->n_workers > 0;
    if (goes_on)
        swap_workers(f, step);
    /* what waits at an address that goes is still given to somebody */
    mk__acceptors_change(&f->acceptors, &step->acceptors, open_known, f);
    if (!goes_on)
        swap_workers(f, step);
    mk_timer_cancel(&f->delay_timer);
    sem_post(&step->taken);
}

static void open_fresh(struct mk_message *message)
{
    struct mk__fair_step *step = MK_OWNER(message, struct mk__fair_step, message);
    mk__acceptors_open(&step->fair->acceptors, open_acceptor, step->fair);
    sem_post(&step->taken);
}

/* In the process context's thread; returns when it is done. */
static void run_in_process(struct mk__fair_step *step, mk_message_fn fn)
{
    sem_init(&step->taken, 0, 0);
    step->message.fn = fn;
    mk_post(step->fair->loop, &step->message);
    while (sem_wait(&step->taken) < 0)
        ;
    sem_destroy(&step->taken);
}

void mk__fair_take(struct mk__fair_step *step, struct mk_loop *loop)
{
    struct mk__fair *f = step->fair;
    if (!f->loop) {
        f->loop = loop;
        mk_timer_init(&f->delay_timer, on_delay_timer);
    }
    run_in_process(step, take_step);
}

void mk__fair_open_fresh(struct mk__fair_step *step)
{
    run_in_process(step, open_fresh);
}
