// SPDX-License-Identifier: Apache-2.0
/* Calls into the workers of a service. */
#include "testing.h"

#include <errno.h>

#include "harness.h"
#include "service_slots.h"

#include "duda/core/common/current.h"
#include "duda/core/event/signals.h"
#include "duda/core/service/inbox.h"

#include <sys/epoll.h>

enum { WORKERS = 2, CALLS_MAX = 65536 };

static struct service service;
static struct service_worker workers[WORKERS];
static struct mk_test_slots slots[WORKERS];
static struct mk_test_fixture fixture;
static char trail[64];
static uint64_t received;

static void note(char letter)
{
    size_t n = strlen(trail);
    assert_true(n + 1 < sizeof(trail));
    trail[n] = letter;
}

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    memset(trail, 0, sizeof(trail));
    received = 0;
    assert_int_equal(mk_test_fixture_open(&fixture, NULL), 0);
    pthread_mutex_init(&service.lock, NULL);
    mk_list_init(&service.workers);
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct service_worker){.loop = &fixture.loop, .index = i, .thread = pthread_self(), .current = 1};
        mk_test_slots_open(&slots[i], &service, &workers[i]);
        assert_int_equal(inbox_open(&workers[i]), 0);
        mk_list_add(&service.workers, &workers[i].node);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WORKERS; i++)
        inbox_close(&workers[i]);
    for (unsigned i = 0; i < WORKERS; i++)
        mk_test_slots_close(&slots[i]);
    pthread_mutex_destroy(&service.lock);
    mk_test_fixture_close(&fixture);
    return 0;
}

static void read_inbox(struct service_worker *w)
{
    struct mk_event *event = &inbox_of(w)->event;
    event->ready(event, EPOLLIN);
}

static void call(void *data)
{
    assert_non_null(current.worker);
    note(*(char *)data);
}

static void drop(void *data)
{
    note((char)(*(char *)data - 'a' + 'A'));
}

/* Ends the worker, as a callback can. */
static void end_worker(void *data)
{
    call(data);
    current.worker->ended = true;
}

TEST(calls_are_made_in_order, begin, end)
{
    char letters[] = "abc";
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(inbox_send(&service, 0, (struct inbox_call){.fn = call, .drop = drop, .data = &letters[i]}),
                         0);
    assert_string_equal(trail, "");
    read_inbox(&workers[1]);
    assert_string_equal(trail, "");
    read_inbox(&workers[0]);
    assert_string_equal(trail, "abcABC");
    read_inbox(&workers[0]);
    assert_string_equal(trail, "abcABC");
    assert_int_equal(workers[0].calls, 0);
    assert_null(current.service);
}

TEST(all_workers_are_called, begin, end)
{
    assert_int_equal(inbox_send(&service, -1, (struct inbox_call){.fn = call, .data = (void *)(uintptr_t) "a"}), 0);
    read_inbox(&workers[0]);
    read_inbox(&workers[1]);
    assert_string_equal(trail, "aa");
    assert_int_equal(inbox_send(&service, 2, (struct inbox_call){.fn = call}), -ENOENT);
    workers[1].ended = true;
    assert_int_equal(inbox_send(&service, 1, (struct inbox_call){.fn = call}), -ENOENT);
    workers[1].ended = false;
}

static void take_value(int fd, uint64_t value)
{
    assert_int_equal(fd, inbox_of(&workers[0])->event.fd);
    received = value;
}

TEST(a_value_is_for_the_callback_of_signals, begin, end)
{
    inbox_send(&service, 0, (struct inbox_call){.value = 5});
    read_inbox(&workers[0]); /* there is no callback */
    assert_int_equal(received, 0);
    signals_of(&service)->callback = take_value;
    inbox_send(&service, 0, (struct inbox_call){.value = 6});
    read_inbox(&workers[0]);
    assert_int_equal(received, 6);
}

/* The other calls are not made, and their data is dropped. */
TEST(a_call_may_end_the_worker, begin, end)
{
    char letters[] = "abc";
    workers[0].calls = 1; /* or the last one that returns would free it */
    inbox_send(&service, 0, (struct inbox_call){.fn = call, .drop = drop, .data = &letters[0]});
    inbox_send(&service, 0, (struct inbox_call){.fn = end_worker, .drop = drop, .data = &letters[1]});
    inbox_send(&service, 0, (struct inbox_call){.fn = call, .drop = drop, .data = &letters[2]});
    read_inbox(&workers[0]);
    assert_string_equal(trail, "abABC");
}

TEST(data_of_calls_that_wait_is_dropped, begin, NULL)
{
    inbox_send(&service, 0, (struct inbox_call){.fn = call, .drop = drop, .data = (void *)(uintptr_t) "a"});
    inbox_send(&service, 1, (struct inbox_call){.fn = call, .drop = drop, .data = (void *)(uintptr_t) "b"});
    end(NULL);
    assert_string_equal(trail, "AB");
}

TEST(there_is_a_limit, begin, end)
{
    struct inbox_call one = {.fn = call};
    for (unsigned i = 0; i < CALLS_MAX; i++)
        assert_int_equal(inbox_add(inbox_of(&workers[0]), &one), 0);
    assert_int_equal(inbox_add(inbox_of(&workers[0]), &one), -EAGAIN);
    assert_int_equal(inbox_send(&service, -1, one), -EAGAIN); /* the other worker gets it */
    assert_int_equal(inbox_of(&workers[1])->n, 1);
}

TEST(without_memory, begin, end)
{
    mk__alloc_countdown = 0;
    assert_int_equal(inbox_send(&service, 0, (struct inbox_call){.fn = call}), -ENOMEM);
    mk__alloc_countdown = -1;
    assert_null(inbox_of(&workers[0])->first);
}
