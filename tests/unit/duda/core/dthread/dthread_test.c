// SPDX-License-Identifier: Apache-2.0
/* Coroutines in a loop with their own clock, called as services do. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "harness.h"
#include "service_slots.h"

#include "duda/core/common/api_error.h"
#include "duda/core/common/current.h"
#include "duda/core/dthread/channel.h"
#include "duda/core/dthread/dthread.h"
#include "duda/core/event/descriptor.h"
#include "duda/core/event/timer.h"
#include "duda/core/objects.h"
#include "duda/core/request/request.h"
#include "duda/core/service/service.h"
#include "duda/core/task/task.h"

static const struct duda_api_dthread *const dthread = &object_dthread;

enum { MANY = 300 };

struct fixture {
    struct mk_test_fixture fixture;
    struct service service;
    struct service_worker worker;
    struct mk_test_slots slots;
    struct duda_request request;
    char log[256]; /* a letter for each step */
    int result;
    void *value;
    duda_dthread_t id, other;
    struct duda_channel *channel, *second;
};

static struct fixture *fix; /* one test runs at a time */

static void note(char letter)
{
    size_t n = strlen(fix->log);
    assert_true(n + 1 < sizeof(fix->log));
    fix->log[n] = letter;
}

static void open_fixture(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    fix = f;
    assert_int_equal(mk_test_fixture_open(&f->fixture, NULL), 0);
    pthread_mutex_init(&f->service.lock, NULL);
    f->service.self.name = (struct duda_string){(char *)(uintptr_t) "test", 4};
    mk_test_slots_open(&f->slots, &f->service, &f->worker);
    f->worker.loop = &f->fixture.loop;
    f->worker.thread = pthread_self();
    f->worker.watch.service = "test";
    f->request.worker = &f->worker;
    f->request.is_kept = true; /* something else sends its response */
    dthread_init(&f->worker);
    tasks_init(&f->worker);
    current_enter(&f->service, &f->worker); /* the tests are callbacks */
    f->worker.calls++;
}

static void end_dthreads(struct fixture *f)
{
    f->worker.ended = true;
    dthread_stop(&f->worker);
    dthread_cancel_all(&f->worker);
}

static void close_fixture(struct fixture *f)
{
    end_dthreads(f);
    assert_int_equal(stack_count(), 0);
    assert_int_equal(f->worker.calls, 1);
    current_leave((struct current){0});
    pthread_mutex_destroy(&f->service.lock);
    timer_cancel_all(&f->worker);
    descriptor_remove_all(&f->worker);
    mk_test_slots_close(&f->slots);
    mk_test_fixture_close(&f->fixture);
}

static void settle(struct fixture *f)
{
    mk_test_settle(&f->fixture);
}

/* ── running ── */

static void sleep_and_note(void *data)
{
    note(*(char *)data);
    fix->result = dthread->sleep(100);
    note((char)(*(char *)data + 1));
}

TEST(sleep)
{
    struct fixture f;
    char letter = 'a';
    open_fixture(&f);
    f.id = dthread->create(sleep_and_note, &letter);
    assert_int_not_equal(f.id, 0);
    assert_string_equal(f.log, ""); /* at the end of the turn */
    settle(&f);
    assert_string_equal(f.log, "a");
    assert_true(dthread->alive(f.id));
    assert_int_equal(dthread->running(), 0);
    mk_test_pass(&f.fixture, 99);
    assert_string_equal(f.log, "a");
    mk_test_pass(&f.fixture, 1);
    assert_string_equal(f.log, "ab");
    assert_int_equal(f.result, 0);
    assert_false(dthread->alive(f.id));
    assert_int_equal(dthread->cancel(f.id), -ESRCH);
    close_fixture(&f);
}

static void yield_and_note(void *data)
{
    for (int i = 0; i < 3; i++) {
        note(*(char *)data);
        assert_int_equal(dthread->yield(), 0);
    }
}

TEST(yield)
{
    struct fixture f;
    char a = 'a', b = 'b';
    open_fixture(&f);
    dthread->create(yield_and_note, &a);
    dthread->create(yield_and_note, &b);
    settle(&f);
    assert_string_equal(f.log, "ababab");
    close_fixture(&f);
}

static void wait_for_other(void *data)
{
    (void)data;
    fix->result = dthread->join(fix->other, 1000);
    note('j');
    assert_int_equal(dthread->join(fix->other, 1000), 0); /* it has ended */
    assert_int_equal(dthread->join(dthread->running(), 1000), -EDEADLK);
}

TEST(join)
{
    struct fixture f;
    char letter = 'a';
    open_fixture(&f);
    f.other = dthread->create(sleep_and_note, &letter);
    dthread->create(wait_for_other, NULL);
    mk_test_pass(&f.fixture, 99);
    assert_string_equal(f.log, "a");
    mk_test_pass(&f.fixture, 1);
    assert_string_equal(f.log, "abj");
    assert_int_equal(f.result, 0);
    close_fixture(&f);
}

static void join_briefly(void *data)
{
    (void)data;
    fix->result = dthread->join(fix->other, 10);
    assert_int_equal(dthread->join(fix->other, 0), -EAGAIN);
    note('j');
}

TEST(a_join_that_times_out)
{
    struct fixture f;
    char letter = 'a';
    open_fixture(&f);
    f.other = dthread->create(sleep_and_note, &letter);
    dthread->create(join_briefly, NULL);
    mk_test_pass(&f.fixture, 10);
    assert_string_equal(f.log, "aj");
    assert_int_equal(f.result, -ETIMEDOUT);
    mk_test_pass(&f.fixture, 90);
    assert_string_equal(f.log, "ajb");
    close_fixture(&f);
}

static void wait_twice(void *data)
{
    (void)data;
    fix->result = dthread->wait(1000);
    note('w');
    fix->result = dthread->wait(50);
    note('x');
}

TEST(wake)
{
    struct fixture f;
    open_fixture(&f);
    f.id = dthread->create(wait_twice, NULL);
    assert_int_equal(dthread->wake(f.id), 0); /* before it waits */
    assert_int_equal(dthread->wake(f.id), 0); /* counts once */
    settle(&f);
    assert_string_equal(f.log, "w");
    mk_test_pass(&f.fixture, 50);
    assert_string_equal(f.log, "wx");
    assert_int_equal(f.result, -ETIMEDOUT);
    assert_int_equal(dthread->wake(f.id), -ESRCH);
    close_fixture(&f);
}

TEST(cancel)
{
    struct fixture f;
    char letter = 'a';
    open_fixture(&f);
    f.id = dthread->create(sleep_and_note, &letter);
    settle(&f);
    assert_int_equal(dthread->cancel(f.id), 0);
    settle(&f);
    assert_string_equal(f.log, "ab");
    assert_int_equal(f.result, -ECANCELED);
    f.id = dthread->create(sleep_and_note, &letter);
    assert_int_equal(dthread->cancel(f.id), 0); /* its first wait fails */
    settle(&f);
    assert_string_equal(f.log, "abab");
    assert_int_equal(f.result, -ECANCELED);
    close_fixture(&f);
}

TEST(waits_outside)
{
    struct fixture f;
    open_fixture(&f);
    f.channel = dthread->channel(0);
    assert_int_equal(dthread->sleep(1), -EPERM);
    assert_int_equal(dthread->yield(), -EPERM);
    assert_int_equal(dthread->wait(1), -EPERM);
    assert_int_equal(dthread->join(1, 1), -EPERM);
    assert_int_equal(dthread->poll(0, DUDA_EVENT_READ, 1), -EPERM);
    assert_int_equal(dthread->receive(f.channel, NULL, 1), -EPERM);
    assert_int_equal(dthread->send(f.channel, NULL, 1), -EPERM);
    assert_int_equal(dthread->create(NULL, NULL), 0);
    assert_false(dthread->alive(0));
    assert_false(dthread->alive(UINT64_MAX));
    close_fixture(&f);
}

/* As the framework calls functions of the service for a dthread. */
static void wait_in_a_callback(void *data)
{
    (void)data;
    struct current outer = current_enter(&fix->service, &fix->worker);
    fix->result = dthread->sleep(1);
    current_leave(outer);
    assert_int_equal(dthread->sleep(1), 0);
    note('a');
}

TEST(a_callback_below_a_dthread_cannot_wait)
{
    struct fixture f;
    open_fixture(&f);
    dthread->create(wait_in_a_callback, NULL);
    mk_test_pass(&f.fixture, 1);
    assert_int_equal(f.result, -EPERM);
    assert_string_equal(f.log, "a");
    close_fixture(&f);
}

static void create_next(void *data)
{
    unsigned *left = data;
    if (--*left)
        assert_int_not_equal(dthread->create(create_next, left), 0);
}

TEST(many_one_after_the_other)
{
    struct fixture f;
    unsigned left = 10000;
    open_fixture(&f);
    dthread->create(create_next, &left);
    settle(&f);
    assert_int_equal(left, 0);
    assert_in_range(stack_count(), 1, 2); /* the stacks were used again */
    close_fixture(&f);
}

static void sleep_long(void *data)
{
    *(int *)data = dthread->sleep(1000);
}

TEST(many_at_once)
{
    struct fixture f;
    int results[MANY];
    open_fixture(&f);
    for (int i = 0; i < MANY; i++) {
        results[i] = 1;
        assert_int_not_equal(dthread->create(sleep_long, &results[i]), 0);
    }
    mk_test_pass(&f.fixture, 1000);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(results[i], 0);
    assert_int_equal(stack_count(), 64); /* the others were given back */
    close_fixture(&f);
}

/* ── requests ── */

static void handle_request(duda_request_t *dr, void *data)
{
    (void)data;
    note(dr ? 'r' : 'n');
    fix->result = dthread->sleep(100);
    note(fix->result == 0 ? '0' : 'e');
    fix->result = dthread->sleep(100);
    note(fix->result == 0 ? '0' : 'e');
}

static struct dthread *start_for_request(struct fixture *f)
{
    int err;
    struct dthread *d = dthread_new(&f->worker, (struct dthread_entry){.event = handle_request}, &err);
    assert_non_null(d);
    dthread_attach(d, &f->request);
    dthread_start(d);
    return d;
}

TEST(a_client_that_leaves)
{
    struct fixture f;
    open_fixture(&f);
    start_for_request(&f);
    start_for_request(&f);
    settle(&f);
    dthread_leave_request(&f.request);
    assert_null(f.request.dthreads);
    settle(&f);
    assert_string_equal(f.log, "rree"); /* once: then they wait again */
    mk_test_pass(&f.fixture, 100);
    assert_string_equal(f.log, "rree00");
    close_fixture(&f);
}

TEST(a_client_that_leaves_before_it_begins)
{
    struct fixture f;
    open_fixture(&f);
    start_for_request(&f);
    dthread_leave_request(&f.request);
    settle(&f);
    assert_string_equal(f.log, "ne");
    close_fixture(&f);
}

static void call_handler(duda_request_t *dr)
{
    assert_non_null(dr);
    note('h');
}

TEST(a_handler_whose_client_has_left)
{
    struct fixture f;
    int err;
    open_fixture(&f);
    for (int i = 0; i < 2; i++) {
        struct dthread *d = dthread_new(&f.worker, (struct dthread_entry){.handler = call_handler}, &err);
        assert_non_null(d);
        dthread_attach(d, &f.request);
        dthread_start(d);
        if (i == 0)
            settle(&f);
    }
    dthread_leave_request(&f.request);
    settle(&f);
    assert_string_equal(f.log, "h");
    close_fixture(&f);
}

TEST(a_response_that_is_complete)
{
    struct fixture f;
    open_fixture(&f);
    start_for_request(&f);
    settle(&f);
    f.request.is_complete = true;
    dthread_leave_request(&f.request);
    mk_test_pass(&f.fixture, 200);
    assert_string_equal(f.log, "r00");
    close_fixture(&f);
}

/* Those that end are not in the list of the request any more: the first, one between others and the last. */
TEST(dthreads_of_a_request_that_end)
{
    struct fixture f;
    struct dthread *d[3];
    open_fixture(&f);
    for (int i = 0; i < 3; i++)
        d[i] = start_for_request(&f);
    mk_test_pass(&f.fixture, 200);
    assert_null(f.request.dthreads);
    for (int i = 0; i < 3; i++)
        d[i] = start_for_request(&f);
    settle(&f);
    dthread_interrupt(d[1], -ECANCELED);
    mk_test_pass(&f.fixture, 100);
    assert_non_null(f.request.dthreads);
    f.request.is_complete = true;
    dthread_leave_request(&f.request);
    close_fixture(&f);
}

/* ── descriptors ── */

/* Descriptors have no place in the loop of the tests: what cannot be watched is an error. */
static void poll_descriptors(void *data)
{
    int fd = eventfd(0, EFD_NONBLOCK);
    (void)data;
    assert_int_equal(dthread->poll(-1, DUDA_EVENT_READ, 1), -EINVAL);
    assert_int_equal(dthread->poll(fd, 0, 1), -EINVAL);
    assert_int_equal(dthread->poll(fd, DUDA_EVENT_SLEEP, 1), -EINVAL);
    assert_int_equal(dthread->poll(fd, DUDA_EVENT_READ, 0), -EAGAIN);
    assert_int_equal(dthread->poll(fd, DUDA_EVENT_RW, 0), DUDA_EVENT_WRITE);
    eventfd_write(fd, 1);
    assert_int_equal(dthread->poll(fd, DUDA_EVENT_READ, 0), DUDA_EVENT_READ);
    close(fd);
    assert_int_equal(dthread->poll(fd, DUDA_EVENT_READ, 0), -EBADF);
    assert_int_equal(dthread->poll(fd, DUDA_EVENT_READ, 1), -EBADF);
    note('p');
}

TEST(descriptors)
{
    struct fixture f;
    open_fixture(&f);
    dthread->create(poll_descriptors, NULL);
    settle(&f);
    assert_string_equal(f.log, "p");
    close_fixture(&f);
}

/* ── channels ── */

static void send_letters(void *data)
{
    for (const char *c = data; *c; c++) {
        note('<');
        assert_int_equal(dthread->send(fix->channel, (void *)(uintptr_t)*c, 1000), 0);
    }
    dthread->close(fix->channel);
}

static void receive_letters(void *data)
{
    void *value;
    (void)data;
    while ((fix->result = dthread->receive(fix->channel, &value, 1000)) == 0)
        note((char)(uintptr_t)value);
    assert_null(value);
}

static void pass_letters(struct fixture *f, unsigned size)
{
    static char text[] = "abc";
    f->channel = dthread->channel(size);
    dthread->create(send_letters, text);
    dthread->create(receive_letters, NULL);
    settle(f);
    assert_int_equal(f->result, -EPIPE);
}

TEST(channels)
{
    struct fixture f;
    open_fixture(&f);
    pass_letters(&f, 0);
    assert_string_equal(f.log, "<a<<bc"); /* one value at a time, and the sender that was woken continues first */
    memset(f.log, 0, sizeof(f.log));
    pass_letters(&f, 2);
    assert_string_equal(f.log, "<<<abc");
    memset(f.log, 0, sizeof(f.log));
    pass_letters(&f, 10);
    assert_string_equal(f.log, "<<<abc");
    close_fixture(&f);
}

TEST(channels_in_callbacks)
{
    struct fixture f;
    void *value;
    open_fixture(&f);
    struct duda_channel *c = dthread->channel(1);
    assert_int_equal(dthread->receive(c, &value, 0), -EAGAIN);
    assert_int_equal(dthread->send(c, &f, 0), 0);
    assert_int_equal(dthread->send(c, &f, 0), -EAGAIN);
    assert_int_equal(dthread->receive(c, &value, 0), 0);
    assert_ptr_equal(value, &f);
    assert_int_equal(dthread->send(c, &f, 0), 0);
    dthread->close(c);
    assert_int_equal(dthread->send(c, &f, 0), -EPIPE);
    assert_int_equal(dthread->receive(c, &value, 0), 0);
    assert_int_equal(dthread->receive(c, &value, 0), -EPIPE);
    dthread->channel_free(c);
    dthread->channel_free(NULL);
    assert_null(dthread->channel(65537));
    assert_int_equal(dthread->send(NULL, &f, 0), -EINVAL);
    close_fixture(&f);
}

static void select_one(void *data)
{
    struct duda_channel *channels[] = {fix->channel, fix->second};
    (void)data;
    fix->result = dthread->select(channels, 2, &fix->value, 100);
    note('s');
}

TEST(select)
{
    struct fixture f;
    open_fixture(&f);
    f.channel = dthread->channel(1);
    f.second = dthread->channel(1);
    dthread->create(select_one, NULL);
    settle(&f);
    assert_int_equal(dthread->send(f.second, &f, 0), 0);
    assert_int_equal(dthread->send(f.channel, &f.log, 0), 0); /* into the buffer: it waits no more */
    settle(&f);
    assert_int_equal(f.result, 1);
    assert_ptr_equal(f.value, &f);
    dthread->create(select_one, NULL);
    settle(&f);
    assert_int_equal(f.result, 0);
    assert_ptr_equal(f.value, &f.log);
    dthread->create(select_one, NULL);
    mk_test_pass(&f.fixture, 100);
    assert_int_equal(f.result, -ETIMEDOUT);
    assert_null(f.value);
    dthread->create(select_one, NULL);
    settle(&f);
    dthread->channel_free(f.second);
    settle(&f);
    assert_int_equal(f.result, 1);
    assert_null(f.value);
    assert_string_equal(f.log, "ssss");
    close_fixture(&f);
}

/* A sender whose time is over takes its value back. */
static void send_briefly(void *data)
{
    fix->result = dthread->send(fix->channel, data, 10);
    note('s');
}

TEST(senders_that_time_out)
{
    struct fixture f;
    void *value;
    open_fixture(&f);
    f.channel = dthread->channel(0);
    dthread->create(send_briefly, &f);
    settle(&f);
    assert_int_equal(dthread->receive(f.channel, &value, 0), 0);
    assert_ptr_equal(value, &f);
    settle(&f);
    assert_int_equal(f.result, 0);
    dthread->create(send_briefly, &f);
    mk_test_pass(&f.fixture, 10);
    assert_int_equal(f.result, -ETIMEDOUT);
    assert_int_equal(dthread->receive(f.channel, &value, 0), -EAGAIN);
    close_fixture(&f);
}

/* ── without memory ── */

static int create_with_failures(void *ctx)
{
    struct fixture *f = ctx;
    static char letter = 'a';
    memset(f->log, 0, sizeof(f->log));
    *api_errors_of(&f->worker) = (struct api_errors){0};
    struct duda_channel *c = dthread->channel(4);
    f->id = dthread->create(sleep_and_note, &letter);
    bool complete = c && f->id;
    dthread->channel_free(c);
    mk_test_pass(&f->fixture, 100);
    assert_string_equal(f->log, f->id ? "ab" : "");
    return complete ? 0 : -ENOMEM;
}

TEST(without_memory)
{
    struct fixture f;
    open_fixture(&f);
    assert_true(mk_test_failing_allocs(create_with_failures, &f) > 1);
    close_fixture(&f);
}

/* ── the end of the service ── */

TEST(the_end_of_the_service)
{
    struct fixture f;
    int results[3] = {1, 1, 1};
    open_fixture(&f);
    for (int i = 0; i < 3; i++)
        dthread->create(sleep_long, &results[i]);
    settle(&f);
    dthread->create(sleep_long, &results[2]); /* has not begun */
    end_dthreads(&f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(results[i], -ECANCELED);
    close_fixture(&f);
}

static void wait_for_children(void *data)
{
    int results[3] = {1, 1, 1};
    duda_dthread_t children[3];
    (void)data;
    for (int i = 0; i < 3; i++)
        children[i] = dthread->create(sleep_long, &results[i]);
    for (int i = 0; i < 3; i++) {
        while (dthread->join(children[i], DUDA_FOREVER) < 0)
            note('!');
        assert_int_equal(results[i], -ECANCELED); /* they have written to this stack before it goes */
    }
    note('d');
}

TEST(the_end_with_children_on_the_stack)
{
    struct fixture f;
    open_fixture(&f);
    dthread->create(wait_for_children, NULL);
    settle(&f);
    end_dthreads(&f);
    assert_string_equal(f.log, "!d");
    close_fixture(&f);
}

static void ignore_errors(void *data)
{
    unsigned *n = data;
    for (;;) {
        if (*n % 2)
            dthread->sleep(10);
        else
            dthread->yield();
        *n += 1;
    }
}

TEST(a_dthread_that_ignores_the_end)
{
    struct fixture f;
    unsigned n = 0;
    open_fixture(&f);
    dthread->create(ignore_errors, &n);
    mk_test_pass(&f.fixture, 100);
    unsigned before = n;
    end_dthreads(&f);
    assert_in_range(n - before, 50, 200);
    close_fixture(&f);
}

/* The thread of a worker ends before the service does: its dthreads run there. */
static void *run_thread(void *data)
{
    struct fixture *f = data;
    static char letter = 'a';
    open_fixture(f);
    f->worker.calls--;
    dthread->create(sleep_and_note, &letter);
    settle(f);
    current_leave((struct current){0});
    return NULL;
}

TEST(the_end_of_the_thread)
{
    struct fixture f;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_thread, &f), 0);
    pthread_join(thread, NULL);
    assert_string_equal(f.log, "ab");
    assert_int_equal(f.result, -ECANCELED);
    assert_true(f.worker.ended);
    assert_int_equal(f.worker.calls, 0);
    assert_int_equal(stack_count(), 0);
    pthread_mutex_destroy(&f.service.lock);
    mk_test_slots_close(&f.slots);
    mk_test_fixture_close(&f.fixture);
}
