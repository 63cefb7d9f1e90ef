// SPDX-License-Identifier: Apache-2.0
/*
 * Runs the turns of a loop: calls back descriptors, messages, timers and tasks, in this order. The poller of
 * real servers is one epoll descriptor per loop.
 */
#include "loop/loop.h"

#include "base/log_limit.h"
#include "base/poll.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ── the poller ── */

static int open_epoll(struct mk_loop *loop)
{
    loop->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    return loop->poll_fd < 0 ? -errno : 0;
}

static void close_epoll(struct mk_loop *loop)
{
    close(loop->poll_fd);
}

static int control_epoll(struct mk_loop *loop, int op, struct mk_event *event, uint32_t events)
{
    struct epoll_event wanted = {.events = events, .data.ptr = event};
    return epoll_ctl(loop->poll_fd, op, event->fd, &wanted) < 0 ? -errno : 0;
}

static int wait_epoll(struct mk_loop *loop, int timeout_ms)
{
    int n = epoll_wait(loop->poll_fd, loop->batch, MK__LOOP_BATCH, timeout_ms);
    return n < 0 ? -errno : n;
}

const struct mk__poller mk__poller_epoll = {
    .open = open_epoll,
    .close = close_epoll,
    .control = control_epoll,
    .wait = wait_epoll,
};

/* ── time ── */

MK_HOT uint64_t mk_loop_now_ms(const struct mk_loop *loop)
{
    return loop->now_ms;
}

uint64_t mk_loop_now_us(const struct mk_loop *loop)
{
    return loop->clock->now_us(loop->clock->ctx);
}

int64_t mk_loop_wall_seconds(const struct mk_loop *loop)
{
    return loop->wall_seconds;
}

MK_HOT uint64_t mk_loop_turns(const struct mk_loop *loop)
{
    return loop->turns;
}

bool mk_loop_has_ended(const struct mk_loop *loop)
{
    return loop->closed;
}

/* ── descriptors ── */

static void ignore_event(struct mk_event *event, uint32_t events)
{
    (void)event;
    (void)events;
}

/* Replaces an event in the batch that was removed during this turn. */
static struct mk_event removed_event = {.ready = ignore_event, .fd = -1};

/* Logs that a descriptor cannot be watched, which a sandbox or the limit of watches may cause for each one. */
static MK_COLD int report_control(const struct mk_loop *loop, int err)
{
    static const char format[] = "epoll_ctl: %s: a descriptor cannot be watched";
    struct mk__log_limit_note note;
    if (err == 0 || !mk__log_limit_admits(MK_LOG_WARN, loop, format, &note))
        return err;
    MK_BUF_ON_STACK(line, 256);
    mk_buf_addf(&line, format, strerror(-err));
    mk__log_limit_add_note(&line, &note);
    mk_log_warn("%s", mk_buf_cstr(&line));
    return err;
}

int mk_event_add(struct mk_loop *loop, struct mk_event *event, uint32_t events)
{
    assert(mk__loop_is_owner(loop) && !loop->closed && event->ready);
    return report_control(loop, loop->poller->control(loop, EPOLL_CTL_ADD, event, events));
}

int mk_event_change(struct mk_loop *loop, struct mk_event *event, uint32_t events)
{
    assert(mk__loop_is_owner(loop) && !loop->closed);
    return report_control(loop, loop->poller->control(loop, EPOLL_CTL_MOD, event, events));
}

void mk_event_del(struct mk_loop *loop, struct mk_event *event)
{
    assert(mk__loop_is_owner(loop));
    if (loop->closed) /* another file may have the number of its epoll descriptor */
        return;
    loop->poller->control(loop, EPOLL_CTL_DEL, event, 0);
    for (int i = loop->batch_at; i < loop->batch_len; i++)
        if (loop->batch[i].data.ptr == event)
            loop->batch[i].data.ptr = &removed_event;
}

/* ── timers and tasks ── */

void mk_timer_init(struct mk_timer *timer, mk_timer_fn fn)
{
    assert(fn);
    *timer = (struct mk_timer){.fn = fn};
    mk_list_init(&timer->node);
}

void mk_timer_arm(struct mk_loop *loop, struct mk_timer *timer, uint32_t delay_ms)
{
    assert(mk__loop_is_owner(loop) && !loop->closed && timer->fn);
    mk__wheel_arm(&loop->wheel, timer, loop->now_ms + delay_ms);
}

void mk_timer_cancel(struct mk_timer *timer)
{
    mk_list_del(&timer->node);
}

void mk_task_init(struct mk_task *task, mk_task_fn fn)
{
    assert(fn);
    task->fn = fn;
    mk_list_init(&task->node);
}

void mk_task_schedule(struct mk_loop *loop, struct mk_task *task)
{
    assert(mk__loop_is_owner(loop) && !loop->closed && task->fn);
    if (mk_list_empty(&task->node))
        mk_list_add(&loop->tasks, &task->node);
}

void mk_task_cancel(struct mk_task *task)
{
    mk_list_del(&task->node);
}

void mk__loop_defer_free(struct mk_loop *loop, struct mk_task *task)
{
    assert(mk__loop_is_owner(loop) && task->fn);
    mk_list_del(&task->node);
    mk_list_add(&loop->closing, &task->node);
}

static __attribute__((noinline)) void run_tasks(struct mk_list *list)
{
    struct mk_list now;
    mk_list_init(&now);
    mk_list_join(&now, list);
    while (!mk_list_empty(&now)) {
        struct mk_task *task = MK_LIST_FIRST(&now, struct mk_task, node);
        mk_list_del(&task->node);
        task->fn(task);
    }
}

/* ── messages ── */

/* The inbox of a loop that has ended. */
static struct mk_message closed_inbox;

void mk_post(struct mk_loop *loop, struct mk_message *message)
{
    assert(message->fn);
    struct mk_message *newest = atomic_load_explicit(&loop->inbox, memory_order_relaxed);
    atomic_fetch_add_explicit(&loop->wakeups_in_flight, 1, memory_order_relaxed);
    do
        message->next = newest;
    while (newest != &closed_inbox &&
           !atomic_compare_exchange_weak_explicit(&loop->inbox, &newest, message, memory_order_release,
                                                  memory_order_relaxed));
    /* From here on the message may be freed. Only the sender that found the inbox empty writes the eventfd. */
    if (!newest)
        eventfd_write(loop->wakeup_event.fd, 1);
    atomic_fetch_sub_explicit(&loop->wakeups_in_flight, 1, memory_order_release);
}

/* Moves the messages of the inbox after those that were taken before. */
static void take_messages(struct mk_loop *loop)
{
    struct mk_message *left = loop->inbox_closed ? &closed_inbox : NULL, *oldest = NULL;
    struct mk_message *newest = atomic_exchange_explicit(&loop->inbox, left, memory_order_acquire);
    while (newest && newest != &closed_inbox) {
        struct mk_message *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    struct mk_message **end = &loop->taken;
    while (*end)
        end = &(*end)->next;
    *end = oldest;
}

static void run_messages(struct mk_loop *loop)
{
    take_messages(loop);
    for (struct mk_message *message; (message = loop->taken);) {
        loop->taken = message->next;
        message->fn(message);
    }
}

void mk_message_cancel(struct mk_loop *loop, struct mk_message *message)
{
    assert(mk__loop_is_owner(loop));
    if (loop->closed)
        return;
    take_messages(loop);
    for (struct mk_message **at = &loop->taken; *at; at = &(*at)->next)
        if (*at == message) {
            *at = message->next;
            return;
        }
}

static void on_wakeup(struct mk_event *event, uint32_t events)
{
    eventfd_t count;
    (void)events;
    if (eventfd_read(event->fd, &count) == 0 || errno == EAGAIN) /* mk__loop_turn() reads the inbox */
        return;
    /* It stays readable: from now on only the next write is an event. EPOLL_CTL_MOD itself is one, so it is called
     * once. */
    struct mk_loop *loop = MK_CONTAINER_OF(event, struct mk_loop, wakeup_event);
    if (!loop->wakeup_is_edge)
        loop->poller->control(loop, EPOLL_CTL_MOD, event, EPOLLIN | EPOLLET);
    loop->wakeup_is_edge = true;
}

/* ── the turn ── */

/* The system's coarse clocks tick together: between two ticks both have the same time. */
static void update_time(struct mk_loop *loop)
{
    uint64_t now_ms = loop->clock->now_ms(loop->clock->ctx);
    if (now_ms == loop->now_ms)
        return;
    loop->now_ms = now_ms;
    loop->wall_seconds = loop->clock->wall_seconds(loop->clock->ctx);
}

int mk__loop_open(struct mk_loop *loop, const struct mk__poller *poller, const struct mk__clock *clock,
                  struct mk_thread_pool *pool)
{
    loop->poller = poller;
    loop->clock = clock;
    loop->thread_pool = pool;
    loop->stopping = loop->owned = loop->inbox_closed = loop->closed = false;
    loop->jobs_pending = 0;
    loop->turns = 0;
    loop->resolver = NULL;
    loop->batch_at = loop->batch_len = 0;
    loop->inbox = NULL;
    loop->taken = NULL;
    loop->wakeups_in_flight = 0;
    loop->wakeup_is_edge = false;
    loop->epoch.users = 0;
    loop->epoch.seen = 0;
    mk_list_init(&loop->tasks);
    mk_list_init(&loop->closing);
    loop->now_ms = UINT64_MAX;
    update_time(loop);
    mk__wheel_init(&loop->wheel, loop->now_ms);
    int err = poller->open(loop);
    if (err < 0)
        return err;
    loop->wakeup_event = (struct mk_event){.ready = on_wakeup, .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    err = loop->wakeup_event.fd < 0 ? -errno : mk_event_add(loop, &loop->wakeup_event, EPOLLIN);
    if (err < 0) {
        if (loop->wakeup_event.fd >= 0)
            close(loop->wakeup_event.fd);
        poller->close(loop);
    }
    return err;
}

void mk__loop_close(struct mk_loop *loop)
{
    loop->thread_pool = NULL; /* `done` would have no loop any more */
    loop->inbox_closed = true;
    run_messages(loop); /* finished jobs and other messages that wait get their callback */
    run_tasks(&loop->closing);
    while (atomic_load_explicit(&loop->wakeups_in_flight, memory_order_acquire))
        sched_yield(); /* a sender may be about to write the eventfd, whose number is reused after close() */
    if (mk__epoch_joined(&loop->epoch))
        mk__epoch_remove(&loop->epoch);
    mk_event_del(loop, &loop->wakeup_event);
    close(loop->wakeup_event.fd);
    loop->poller->close(loop);
    loop->closed = true;
}

int mk__loop_timeout_ms(const struct mk_loop *loop, uint64_t now_ms)
{
    if (!mk_list_empty(&loop->tasks) || loop->taken)
        return 0;
    uint64_t next = mk__wheel_next_ms(&loop->wheel);
    if (next == UINT64_MAX)
        return -1;
    uint64_t delay = next > now_ms ? next - now_ms : 0;
    return delay > INT_MAX ? INT_MAX : (int)delay;
}

static int wait_for_events(struct mk_loop *loop)
{
    int timeout_ms = mk__loop_timeout_ms(loop, loop->now_ms);
    if (!mk__epoch_joined(&loop->epoch))
        return loop->poller->wait(loop, timeout_ms);
    mk__epoch_idle(&loop->epoch);
    int n = loop->poller->wait(loop, timeout_ms);
    mk__epoch_enter(&loop->epoch);
    return n;
}

/* The call that waits is refused: messages and timers come all the same, and a stop with them. */
static MK_COLD void pause_turn(struct mk_loop *loop, int err)
{
    mk__poll_report("epoll_wait", err);
    if (mk__epoch_joined(&loop->epoch))
        mk__epoch_idle(&loop->epoch);
    mk__poll_pause(mk__loop_timeout_ms(loop, loop->now_ms));
    if (mk__epoch_joined(&loop->epoch))
        mk__epoch_enter(&loop->epoch);
}

MK_HOT int mk__loop_turn(struct mk_loop *loop)
{
    assert(mk__loop_is_owner(loop));
    loop->turns++;
    int n = wait_for_events(loop);
    if (MK_UNLIKELY(n < 0 && n != -EINTR)) {
        pause_turn(loop, n);
    }
    update_time(loop);
    loop->batch_len = n < 0 ? 0 : n;
    for (loop->batch_at = 0; loop->batch_at < loop->batch_len;) {
        const struct epoll_event *one = &loop->batch[loop->batch_at++];
        struct mk_event *event = one->data.ptr;
        event->ready(event, one->events);
    }
    if (atomic_load_explicit(&loop->inbox, memory_order_relaxed) || loop->taken)
        run_messages(loop);
    mk__wheel_advance(&loop->wheel, loop->now_ms);
    if (!mk_list_empty(&loop->tasks))
        run_tasks(&loop->tasks);
    if (!mk_list_empty(&loop->closing))
        run_tasks(&loop->closing);
    return 0;
}

int mk__loop_run(struct mk_loop *loop)
{
    int err = 0;
    loop->owner = pthread_self();
    loop->owned = true;
    while (!loop->stopping && err == 0)
        err = mk__loop_turn(loop);
    loop->owned = false;
    return err;
}

void mk__loop_stop(struct mk_loop *loop)
{
    assert(mk__loop_is_owner(loop));
    loop->stopping = true;
}
