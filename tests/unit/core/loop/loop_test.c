// SPDX-License-Identifier: Apache-2.0
/* The turn of the loop: its order, what a callback may do to the others, and what comes from other threads. */
#include "testing.h"

#include "harness.h"
#include "loop/job.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The callbacks in their order: a character each. */
static char trail[256];

static void note(char c)
{
    size_t n = strlen(trail);
    assert_true(n + 1 < sizeof(trail));
    trail[n] = c;
    trail[n + 1] = '\0';
}

static void expect_trail(const char *expected)
{
    assert_string_equal(trail, expected);
    trail[0] = '\0';
}

static const struct mk__poller scripted;

/* A loop whose poller delivers what the test put into `script`. */
struct fixture {
    struct mk_test_fixture fixture;
    struct mk_event *script[4];
    uint32_t events;
    int n, error, refuse_add;
};

static struct fixture f;

static int open_scripted(struct mk_loop *loop)
{
    (void)loop;
    return f.error;
}

static void close_scripted(struct mk_loop *loop)
{
    (void)loop;
    note('-');
}

static int control_scripted(struct mk_loop *loop, int op, struct mk_event *event, uint32_t events)
{
    (void)loop;
    (void)event;
    (void)events;
    return op == EPOLL_CTL_ADD ? f.refuse_add : 0;
}

static int last_timeout;

static int wait_scripted(struct mk_loop *loop, int timeout_ms)
{
    int n = f.n;
    last_timeout = timeout_ms;
    for (int i = 0; i < n; i++)
        loop->batch[i] = (struct epoll_event){.events = f.events, .data.ptr = f.script[i]};
    f.n = 0;
    return f.error ? f.error : n;
}

static const struct mk__poller scripted = {open_scripted, close_scripted, control_scripted, wait_scripted};

static struct mk_loop *open_loop(void)
{
    memset(&f, 0, sizeof(f));
    trail[0] = '\0';
    assert_int_equal(mk_test_fixture_open(&f.fixture, NULL), 0);
    f.fixture.loop.poller = &scripted;
    return &f.fixture.loop;
}

static void close_loop(void)
{
    mk__loop_close(&f.fixture.loop);
}

/* ── the order ── */

static void on_event(struct mk_event *event, uint32_t events)
{
    assert_int_equal(events, f.events);
    note('a' + (char)event->fd);
}

static void on_message(struct mk_message *message)
{
    (void)message;
    note('m');
}

static void on_timer(struct mk_timer *timer)
{
    (void)timer;
    note('t');
}

static void on_task(struct mk_task *task)
{
    (void)task;
    note('k');
}

static void on_deferred_free(struct mk_task *task)
{
    (void)task;
    note('g');
}

TEST(order_of_a_turn)
{
    struct mk_loop *loop = open_loop();
    struct mk_event events[2] = {{on_event, 0}, {on_event, 1}};
    struct mk_message message = {.fn = on_message};
    struct mk_timer timer;
    struct mk_task task, to_free;
    mk_task_init(&to_free, on_deferred_free);
    mk__loop_defer_free(loop, &to_free);
    mk_task_init(&task, on_task);
    mk_task_schedule(loop, &task);
    mk_task_schedule(loop, &task); /* twice is once */
    mk_timer_init(&timer, on_timer);
    mk_timer_arm(loop, &timer, 5);
    mk_post(loop, &message);
    f.script[0] = &events[1];
    f.script[1] = &events[0];
    f.n = 2;
    f.events = EPOLLIN;
    f.fixture.now_ms += 5;
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("bamtkg");
    assert_int_equal(last_timeout, 0); /* a task does not wait */
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("");
    assert_int_equal(last_timeout, -1);
    close_loop();
}

TEST(the_clock_is_read_once_a_turn)
{
    struct mk_loop *loop = open_loop();
    assert_int_equal(mk_loop_now_ms(loop), 1000);
    assert_int_equal(mk_loop_wall_seconds(loop), 784111777);
    f.fixture.now_ms += 2500;
    assert_int_equal(mk_loop_now_ms(loop), 1000);
    assert_int_equal(mk__loop_turn(loop), 0);
    assert_int_equal(mk_loop_now_ms(loop), 3500);
    assert_int_equal(mk_loop_wall_seconds(loop), 784111779);
    close_loop();
}

TEST(waits_for_the_next_timer)
{
    struct mk_loop *loop = open_loop();
    struct mk_timer timer;
    mk_timer_init(&timer, on_timer);
    mk_timer_arm(loop, &timer, 40);
    assert_int_equal(mk__loop_turn(loop), 0);
    assert_int_equal(last_timeout, 40);
    f.fixture.now_ms += 39;
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("");
    assert_int_equal(mk__loop_turn(loop), 0);
    assert_int_equal(last_timeout, 1);
    f.fixture.now_ms += 1;
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("t");
    mk_timer_arm(loop, &timer, UINT32_MAX); /* 49 days: further than the wheel reaches */
    assert_int_equal(mk__loop_turn(loop), 0);
    assert_in_range(last_timeout, 1, INT32_MAX);
    mk_timer_cancel(&timer);
    close_loop();
}

/* ── what a callback may do to the others ── */

static struct mk_event *victim;

static void on_killer(struct mk_event *event, uint32_t events)
{
    on_event(event, events);
    mk_event_del(&f.fixture.loop, victim);
}

TEST(no_event_after_its_removal)
{
    struct mk_loop *loop = open_loop();
    struct mk_event events[3] = {{on_killer, 0}, {on_event, 1}, {on_event, 2}};
    victim = &events[1];
    for (int i = 0; i < 3; i++)
        f.script[i] = &events[i];
    f.n = 3;
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("ac"); /* the second one was in the same batch */
    victim = &events[0];
    f.script[0] = &events[0];
    f.script[1] = &events[0];
    f.n = 2;
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("a"); /* it removed itself */
    close_loop();
}

static void on_replaced(struct mk_event *event, uint32_t events)
{
    on_event(event, events);
    note('!');
}

static void on_replacer(struct mk_event *event, uint32_t events)
{
    on_event(event, events);
    event->ready = on_event;
    victim->ready = on_replaced;
}

/* A callback replaces the functions of two events, of which one is in the same batch. */
TEST(another_function_for_an_event)
{
    struct mk_loop *loop = open_loop();
    struct mk_event events[2] = {{on_replacer, 0}, {on_event, 1}};
    victim = &events[1];
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 2; i++)
            f.script[i] = &events[i];
        f.n = 2;
        assert_int_equal(mk__loop_turn(loop), 0);
        expect_trail("ab!");
    }
    close_loop();
}

static struct mk_task deferred_free;

static void on_freeing_event(struct mk_event *event, uint32_t events)
{
    on_event(event, events);
    mk_task_init(&deferred_free, on_deferred_free);
    mk_task_schedule(&f.fixture.loop, &deferred_free);
    mk__loop_defer_free(&f.fixture.loop, &deferred_free); /* moves it from the tasks to the deferred frees */
}

TEST(deferred_frees_come_last)
{
    struct mk_loop *loop = open_loop();
    struct mk_event events[2] = {{on_freeing_event, 0}, {on_event, 1}};
    struct mk_task task;
    mk_task_init(&task, on_task);
    mk_task_schedule(loop, &task);
    f.script[0] = &events[0];
    f.script[1] = &events[1];
    f.n = 2;
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("abkg");
    close_loop();
}

static struct mk_task again, other;

static void on_again(struct mk_task *task)
{
    note('r');
    mk_task_schedule(&f.fixture.loop, task); /* next turn, not this one */
    mk_task_cancel(&other);
}

TEST(tasks_of_a_turn)
{
    struct mk_loop *loop = open_loop();
    mk_task_init(&again, on_again);
    mk_task_init(&other, on_task);
    mk_task_schedule(loop, &again);
    mk_task_schedule(loop, &other); /* cancelled by the one before it */
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("r");
    assert_int_equal(mk__loop_turn(loop), 0);
    assert_int_equal(last_timeout, 0);
    expect_trail("r");
    mk_task_cancel(&again);
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("");
    assert_int_equal(last_timeout, -1);
    close_loop();
}

TEST(closing_delivers_what_is_left)
{
    struct mk_loop *loop = open_loop();
    struct mk_message message = {.fn = on_message};
    struct mk_task to_free;
    mk_post(loop, &message);
    mk_task_init(&to_free, on_deferred_free);
    mk__loop_defer_free(loop, &to_free);
    close_loop();
    expect_trail("mg-");
}

static void on_stop(struct mk_message *message)
{
    (void)message;
    mk__loop_stop(&f.fixture.loop);
}

TEST(run_ends)
{
    struct mk_loop *loop = open_loop();
    struct mk_message message = {.fn = on_stop};
    mk_post(loop, &message);
    assert_int_equal(mk__loop_run(loop), 0);
    loop->stopping = false;
    f.error = -EINTR; /* a signal is no reason to end */
    assert_int_equal(mk__loop_turn(loop), 0);
    close_loop();
}

/* A sandbox refuses the call each time: what needs no event comes all the same. */
TEST(waits_that_are_refused)
{
    struct mk_loop *loop = open_loop();
    struct mk_message note_message = {.fn = on_message}, stop = {.fn = on_stop};
    struct mk_timer timer;
    mk_timer_init(&timer, on_timer);
    mk_timer_arm(loop, &timer, 1);
    f.error = -EPERM;
    mk_post(loop, &note_message);
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("m");
    f.fixture.now_ms += 1;
    assert_int_equal(mk__loop_turn(loop), 0);
    expect_trail("t");
    mk_post(loop, &stop);
    assert_int_equal(mk__loop_run(loop), 0);
    close_loop();
}

TEST(opening_fails)
{
    open_loop();
    close_loop();
    f.error = -EMFILE;
    assert_int_equal(mk__loop_open(&f.fixture.loop, &scripted, &f.fixture.clock, NULL), -EMFILE);
    f.error = 0;
    f.refuse_add = -ENOSPC;
    trail[0] = '\0';
    assert_int_equal(mk__loop_open(&f.fixture.loop, &scripted, &f.fixture.clock, NULL), -ENOSPC);
    expect_trail("-"); /* the poller was closed again */
}

/* ── epoll itself, and other threads ── */

static struct mk_loop real;

enum { SENDERS = 4, MESSAGES = 5000, FEW = 2 };

struct numbered_message {
    struct mk_message message;
    unsigned sender, number;
};

static struct numbered_message messages[SENDERS][MESSAGES];
static _Atomic unsigned next_number[SENDERS];
static unsigned received;

static void on_numbered_message(struct mk_message *message)
{
    const struct numbered_message *l = MK_CONTAINER_OF(message, struct numbered_message, message);
    assert_int_equal(l->number, next_number[l->sender]); /* those of one sender in their order */
    next_number[l->sender]++;
    if (++received == SENDERS * MESSAGES)
        mk__loop_stop(&real);
}

/* Posts a few messages and waits for them, so that many are posted while the loop takes others or falls asleep. */
static void *send_messages(void *ctx)
{
    struct numbered_message *own = ctx;
    for (unsigned i = 0; i < MESSAGES; i++) {
        mk_post(&real, &own[i].message);
        while (i % FEW == 0 && next_number[own->sender] < i)
            sched_yield();
    }
    return NULL;
}

TEST(posts_from_many_threads)
{
    pthread_t threads[SENDERS];
    assert_int_equal(mk__loop_open(&real, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    for (unsigned s = 0; s < SENDERS; s++) {
        for (unsigned i = 0; i < MESSAGES; i++)
            messages[s][i] = (struct numbered_message){.message.fn = on_numbered_message, .sender = s, .number = i};
        assert_int_equal(pthread_create(&threads[s], NULL, send_messages, messages[s]), 0);
    }
    assert_int_equal(mk__loop_run(&real), 0);
    assert_int_equal(received, SENDERS * MESSAGES);
    for (unsigned s = 0; s < SENDERS; s++)
        pthread_join(threads[s], NULL);
    mk__loop_close(&real);
}

static void stop_real(struct mk_message *message)
{
    (void)message;
    mk__loop_stop(&real);
}

static void *post_one(void *ctx)
{
    mk_post(&real, ctx);
    return NULL;
}

static void spin(struct mk_task *task)
{
    mk_task_schedule(&real, task);
}

/* A running loop may read a message before its sender writes the eventfd, and be closed: it waits for the sender. */
TEST(closing_waits_for_the_wakeup)
{
    for (unsigned i = 0; i < 500; i++) {
        struct mk_message last = {.fn = stop_real};
        struct mk_task task;
        pthread_t sender;
        assert_int_equal(mk__loop_open(&real, &mk__poller_epoll, &mk__clock_system, NULL), 0);
        mk_task_init(&task, spin);
        mk_task_schedule(&real, &task); /* so that no turn waits */
        assert_int_equal(pthread_create(&sender, NULL, post_one, &last), 0);
        assert_int_equal(mk__loop_run(&real), 0);
        mk_task_cancel(&task);
        int wakeup_fd = real.wakeup_event.fd;
        mk__loop_close(&real);
        int reused = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); /* of the same number */
        assert_int_equal(reused, wakeup_fd < real.poll_fd ? wakeup_fd : real.poll_fd);
        pthread_join(sender, NULL);
        eventfd_t rings = 0;
        assert_int_equal(eventfd_read(reused, &rings), -1);
        close(reused);
    }
}

/* ── messages that are taken back, and loops that have ended ── */

enum { LETTERS = 4 };

static struct lettered {
    struct mk_message message;
    char letter;
    int cancels; /* another one of them; -1: none */
} lettered[LETTERS];

static void on_lettered(struct mk_message *message)
{
    struct lettered *one = MK_CONTAINER_OF(message, struct lettered, message);
    note(one->letter);
    if (one->cancels >= 0)
        mk_message_cancel(&real, &lettered[one->cancels].message);
}

static int open_real(void **state)
{
    (void)state;
    trail[0] = '\0';
    for (int i = 0; i < LETTERS; i++)
        lettered[i] = (struct lettered){{.fn = on_lettered}, (char)('a' + i), -1};
    return mk__loop_open(&real, &mk__poller_epoll, &mk__clock_system, NULL);
}

static void post_letters(void)
{
    for (unsigned i = 0; i < LETTERS; i++)
        mk_post(&real, &lettered[i].message);
}

static int close_real(void **state)
{
    (void)state;
    if (!real.closed)
        mk__loop_close(&real);
    return 0;
}

TEST(a_message_is_taken_back, open_real, close_real)
{
    for (int i = 0; i < LETTERS; i++) {
        post_letters();
        mk_message_cancel(&real, &lettered[i].message);
        mk_message_cancel(&real, &lettered[i].message);
        assert_int_equal(mk__loop_turn(&real), 0);
        expect_trail((const char *[]){"bcd", "acd", "abd", "abc"}[i]);
    }
}

TEST(messages_take_each_other_back, open_real, close_real)
{
    lettered[0].cancels = 2;
    lettered[3].cancels = 1; /* which has run */
    post_letters();
    assert_int_equal(mk__loop_turn(&real), 0);
    expect_trail("abd");
    mk__loop_close(&real); /* likewise here */
    expect_trail("");
}

static struct mk_message *later;

static void cancel_later(struct mk_task *task)
{
    (void)task;
    post_letters();
    mk_message_cancel(&real, later);
}

/* What was taken out of the inbox at the end of a turn does not wait for an event. */
TEST(the_others_are_not_forgotten, open_real, close_real)
{
    struct mk_task task;
    later = &lettered[2].message;
    mk_task_init(&task, cancel_later);
    mk_task_schedule(&real, &task);
    assert_int_equal(mk__loop_turn(&real), 0);
    expect_trail("");
    assert_int_equal(mk__loop_timeout_ms(&real, mk_loop_now_ms(&real)), 0);
    assert_int_equal(mk__loop_turn(&real), 0);
    expect_trail("abd");
}

/* What waits is run, and may still be taken back; what is posted then is ignored. */
TEST(a_loop_that_ends, open_real, close_real)
{
    struct mk_task task;
    later = &lettered[1].message;
    lettered[1].cancels = 3;
    mk_task_init(&task, cancel_later);
    mk__loop_defer_free(&real, &task);
    post_letters();
    mk__loop_close(&real);
    expect_trail("abc");
    mk_message_cancel(&real, &lettered[0].message);
    post_letters();
    expect_trail("");
    assert_true(mk_loop_has_ended(&real));
}

static struct mk_job late_job;
static int late_err;

static void start_again(struct mk_message *message)
{
    mk_post(&real, message);
    late_err = mk_job_submit(&real, &late_job);
}

static void do_nothing(struct mk_job *job)
{
    (void)job;
}

TEST(a_message_that_starts_something_at_the_end)
{
    struct mk_thread_pool pool;
    struct mk_message message = {.fn = start_again};
    late_job = (struct mk_job){.work = do_nothing, .done = do_nothing};
    late_err = 0;
    mk__job_open_pool(&pool, 1);
    assert_int_equal(mk__loop_open(&real, &mk__poller_epoll, &mk__clock_system, &pool), 0);
    mk_post(&real, &message);
    mk_thread_pool_close(&pool); /* as a server that stops */
    mk__loop_close(&real);
    assert_int_equal(late_err, -EAGAIN);
}

/* Descriptors that are opened after the loop was closed have its numbers: their events must stay. */
TEST(removal_after_the_end)
{
    int epolls[8];
    struct mk_event event = {on_event, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct mk_timer timer;
    struct epoll_event wanted = {.events = EPOLLIN};
    assert_int_equal(mk__loop_open(&real, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    assert_int_equal(mk_event_add(&real, &event, EPOLLIN), 0);
    mk_timer_init(&timer, on_timer);
    mk_timer_arm(&real, &timer, 1000);
    mk__loop_close(&real);
    for (size_t i = 0; i < COUNT(epolls); i++) {
        epolls[i] = epoll_create1(EPOLL_CLOEXEC);
        assert_int_equal(epoll_ctl(epolls[i], EPOLL_CTL_ADD, event.fd, &wanted), 0);
    }
    mk_event_del(&real, &event);
    mk_timer_cancel(&timer);
    for (size_t i = 0; i < COUNT(epolls); i++) {
        assert_int_equal(epoll_ctl(epolls[i], EPOLL_CTL_ADD, event.fd, &wanted), -1);
        assert_int_equal(errno, EEXIST);
        close(epolls[i]);
    }
    close(event.fd);
}

static uint32_t seen;

static void on_ready(struct mk_event *event, uint32_t events)
{
    (void)event;
    seen |= events;
}

TEST(epoll)
{
    struct mk_event event = {on_ready, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct mk_event wrong = {on_ready, -1};
    struct mk_task task;
    assert_int_equal(mk__loop_open(&real, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    assert_int_equal(mk_event_add(&real, &wrong, EPOLLIN), -EBADF);
    assert_int_equal(mk_event_add(&real, &event, EPOLLIN), 0);
    assert_int_equal(mk_event_add(&real, &event, EPOLLIN), -EEXIST);
    mk_task_init(&task, on_task);
    mk_task_schedule(&real, &task); /* so that no turn waits */
    assert_int_equal(mk__loop_turn(&real), 0);
    assert_int_equal(seen, 0);
    eventfd_write(event.fd, 1);
    assert_int_equal(mk__loop_turn(&real), 0);
    assert_int_equal(seen, EPOLLIN);
    seen = 0;
    assert_int_equal(mk_event_change(&real, &event, EPOLLOUT), 0);
    assert_int_equal(mk__loop_turn(&real), 0);
    assert_int_equal(seen, EPOLLOUT);
    mk_event_del(&real, &event);
    mk_task_schedule(&real, &task);
    seen = 0;
    assert_int_equal(mk__loop_turn(&real), 0);
    assert_int_equal(seen, 0);
    close(event.fd);
    mk__loop_close(&real);
}
