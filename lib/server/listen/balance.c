// SPDX-License-Identifier: Apache-2.0
/*
 * Hands connections to workers (server/listen/balance.h). All of it runs in the main thread, except what prepares an
 * update.
 */
#include "server/listen/balance.h"

#include "base/log.h"
#include "http/conn.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EDGES = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, SLOTS_MAX = 1 << 24, EVICT_BATCH = 16 };

/* ── handoff slots ── */

static size_t slots_bytes(uint32_t n)
{
    return n * sizeof(struct mk__handoff_slot);
}

int mk__balance_open_slots(struct mk__handoff_slots *a)
{
    struct rlimit limit;
    if (a->slots)
        return 0;
    uint32_t n = SLOTS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < n)
        n = (uint32_t)limit.rlim_max;
    void *slots =
        mmap(NULL, slots_bytes(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED)
        return -ENOMEM;
    *a = (struct mk__handoff_slots){slots, n};
    return 0;
}

void mk__balance_close_slots(struct mk__handoff_slots *a)
{
    if (a->slots)
        munmap(a->slots, slots_bytes(a->n));
    *a = (struct mk__handoff_slots){0};
}

/* ── one connection ── */

unsigned mk__balance_pick(const uint32_t *loads, unsigned n, unsigned last)
{
    unsigned best = (last + 1) % n;
    for (unsigned i = 2; i <= n; i++) {
        unsigned k = (last + i) % n;
        if (loads[k] < loads[best])
            best = k;
    }
    return best;
}

/* Workers without memory come last. Returns false if all are out of memory. */
static bool pick_worker(struct mk__balancer *b, struct mk__thread **ret_worker)
{
    MK_UNINITIALIZED uint32_t loads[MK__BALANCE_WORKERS_MAX];
    for (unsigned i = 0; i < b->n_workers; i++) {
        const struct mk__worker_load *load = &b->workers[i]->load;
        loads[i] = mk__thread_load(load) | (load->out_of_memory ? 1u << 31 : 0);
    }
    b->last = mk__balance_pick(loads, b->n_workers, b->last);
    *ret_worker = b->workers[b->last];
    return !(loads[b->last] >> 31);
}

static uint32_t next_sequence(struct mk__balancer *b)
{
    if (++b->sequence == 0)
        b->sequence = 1;
    return b->sequence;
}

static int hand_to_worker(struct mk__balancer *b, struct mk__thread *t, const struct mk__listener *listener, int fd)
{
    uint32_t sequence = next_sequence(b);
    if ((uint32_t)fd >= b->handoff_slots->n)
        return -EMFILE;
    struct mk__handoff_slot *slot = &b->handoff_slots->slots[fd];
    atomic_store_explicit(&slot->listener, listener, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence, memory_order_relaxed);
    /* counted before it is added: the worker may close it at once */
    atomic_fetch_add_explicit(&t->load.assigned, 1, memory_order_relaxed);
    struct epoll_event wanted = {.events = EDGES, .data.u64 = mk__handoff_tag(fd, sequence)};
    if (epoll_ctl(t->loop.poll_fd, EPOLL_CTL_ADD, fd, &wanted) == 0)
        return 0;
    int err = -errno;
    atomic_fetch_sub_explicit(&t->load.assigned, 1, memory_order_relaxed);
    return err;
}

/* epoll_ctl() failed: the system is short of memory, or fs.epoll.max_user_watches is reached. */
static int reject_unassigned(struct mk__balancer *b, const struct mk__listener *listener, int fd, int err)
{
    b->rejected++;
    if (mk__log_is_due(&b->warned_ms, mk_loop_now_ms(b->loop)))
        mk_log_warn("cannot give a connection to a worker: %s; %u were closed so far", strerror(-err), b->rejected);
    mk__limits_remove_conn(b->limits);
    if (!mk__limits_evicts(b->limits)) {
        mk__limits_reject(b->limits, listener, fd);
        return 0;
    }
    close(fd);
    return -ENOMEM;
}

static int assign_accepted(struct mk__acceptor *a, int fd)
{
    struct mk__balancer *b = a->ctx;
    struct mk__thread *t;
    bool has_memory = pick_worker(b, &t);
    int err = hand_to_worker(b, t, a->listener, fd);
    if (err < 0)
        return reject_unassigned(b, a->listener, fd, err);
    if (has_memory)
        return 0;
    for (unsigned i = 0; i < b->n_workers; i++)
        b->workers[i]->load.out_of_memory = false; /* they are tried again when the acceptor's pause ends */
    return -ENOMEM;
}

/* ── eviction ── */

static void on_evicted(struct mk_message *message)
{
    struct mk__thread *t = MK_CONTAINER_OF(message, struct mk__thread, load.evicted_message);
    struct mk__balancer *b = t->load.owner;
    t->load.evict_pending = false;
    for (unsigned i = 0; i < b->acceptors.n; i++)
        mk__acceptor_retry(b->acceptors.items[i]);
}

/* In the worker's thread. */
static void on_evict_request(struct mk_message *message)
{
    struct mk__thread *t = MK_CONTAINER_OF(message, struct mk__thread, load.evict_message);
    struct mk__balancer *b = t->load.owner;
    unsigned closed = mk__conn_close_idle(&t->http, t->load.evict_max); /* b->workers may have been replaced */
    if (mk__limits_count_evicted(b->limits, closed) > 0)
        mk_post(b->loop, &t->load.evicted_message);
    else
        t->load.evict_pending = false; /* nothing was idle: it is asked again next time */
}

/* Asks the workers to close idle connections; on_evicted() resumes accepting. Returns false: none is closed yet. */
static bool request_eviction(struct mk__acceptor *a)
{
    struct mk__balancer *b = a->ctx;
    for (unsigned i = 0; i < b->n_workers; i++) {
        struct mk__worker_load *load = &b->workers[i]->load;
        if (mk__thread_load(load) == 0 || atomic_exchange(&load->evict_pending, true))
            continue;
        load->owner = b;
        load->evict_max = (EVICT_BATCH + b->n_workers - 1) / b->n_workers;
        load->evict_message.fn = on_evict_request;
        load->evicted_message.fn = on_evicted;
        mk_post(&b->workers[i]->loop, &load->evict_message);
    }
    return false;
}

static const struct mk__acceptor_callbacks acceptor_callbacks = {assign_accepted, request_eviction};

static int open_acceptor(void *ctx, struct mk__acceptor *a)
{
    struct mk__balancer *b = ctx;
    a->limits = b->limits;
    return mk__acceptor_open(a, b->loop, a->event.fd, a->listener->shared, &acceptor_callbacks, b);
}

/* Workers know a new listener only once they have its generation: see mk__balance_open_pending(). */
static int open_unless_pending(void *ctx, struct mk__acceptor *a)
{
    return a->listener->pending ? 0 : open_acceptor(ctx, a);
}

/* ── the end ── */

static void end_handoff(struct mk__balancer *b)
{
    mk__acceptors_close(&b->acceptors);
    for (unsigned i = 0; i < b->n_workers; i++)
        mk_post(&b->workers[i]->loop, &b->workers[i]->load.end_message);
}

static void on_delay_timer(struct mk_timer *timer)
{
    end_handoff(MK_CONTAINER_OF(timer, struct mk__balancer, delay_timer));
}

static void on_drain(struct mk_message *message)
{
    struct mk__balancer *b = MK_CONTAINER_OF(message, struct mk__balancer, drain_message);
    if (b->delay_ms)
        mk_timer_arm(b->loop, &b->delay_timer, b->delay_ms);
    else
        end_handoff(b);
}

void mk__balance_drain(struct mk__balancer *b, uint32_t delay_ms)
{
    b->delay_ms = delay_ms;
    b->drain_message.fn = on_drain;
    mk_post(b->loop, &b->drain_message);
}

/* ── updates ── */

int mk__balance_prepare(struct mk__balancer_update *update, struct mk__balancer *b,
                        const struct mk__listeners *listeners, unsigned n)
{
    *update = (struct mk__balancer_update){.balancer = b, .n_workers = n};
    if (!n)
        return 0;
    update->workers = mk_account_alloc(NULL, n * sizeof(struct mk__thread *));
    int err = update->workers ? mk__balance_open_slots(b->handoff_slots) : -ENOMEM;
    return err == 0 ? mk__acceptors_make(&update->acceptors, listeners, 0, 1) : err;
}

void mk__balance_free_update(struct mk__balancer_update *update)
{
    mk__acceptors_free(&update->acceptors);
    mk_account_free(NULL, update->workers, 0);
    update->workers = NULL;
}

static void swap_workers(struct mk__balancer *b, struct mk__balancer_update *update)
{
    struct mk__thread **workers = b->workers;
    unsigned n = b->n_workers;
    b->workers = update->workers;
    b->n_workers = update->n_workers;
    update->workers = workers;
    update->n_workers = n;
}

static void apply_update(struct mk_message *message)
{
    struct mk__balancer_update *update = MK_CONTAINER_OF(message, struct mk__balancer_update, message);
    struct mk__balancer *b = update->balancer;
    bool has_workers = update->n_workers > 0;
    if (has_workers)
        swap_workers(b, update);
    /* connections that wait at a removed address still go to a worker */
    mk__acceptors_replace(&b->acceptors, &update->acceptors, open_unless_pending, b);
    if (!has_workers)
        swap_workers(b, update);
    mk_timer_cancel(&b->delay_timer);
    sem_post(&update->done);
}

static void open_pending(struct mk_message *message)
{
    struct mk__balancer_update *update = MK_CONTAINER_OF(message, struct mk__balancer_update, message);
    mk__acceptors_open(&update->balancer->acceptors, open_acceptor, update->balancer);
    sem_post(&update->done);
}

/* Runs `fn` in the main thread, and waits for its end. */
static void run_in_main_thread(struct mk__balancer_update *update, mk_message_fn fn)
{
    sem_init(&update->done, 0, 0);
    update->message.fn = fn;
    mk_post(update->balancer->loop, &update->message);
    while (sem_wait(&update->done) < 0)
        ;
    sem_destroy(&update->done);
}

void mk__balance_apply(struct mk__balancer_update *update, struct mk_loop *loop)
{
    struct mk__balancer *b = update->balancer;
    if (!b->loop) {
        b->loop = loop;
        mk_timer_init(&b->delay_timer, on_delay_timer);
    }
    run_in_main_thread(update, apply_update);
}

void mk__balance_open_pending(struct mk__balancer_update *update)
{
    run_in_main_thread(update, open_pending);
}
