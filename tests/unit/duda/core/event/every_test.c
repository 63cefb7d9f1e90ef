// SPDX-License-Identifier: Apache-2.0
/* Functions at an interval, whose worker ends. */
#include "testing.h"

#include "harness.h"
#include "service_slots.h"

#include "duda/core/event/every.h"
#include "duda/core/service/inbox.h"

#include <sys/epoll.h>

static struct service service;
static struct service_worker workers[3];
static struct mk_test_slots slots[3];
static struct every every = {.ms = 5};
static struct mk_test_fixture fixture;

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    memset(workers, 0, sizeof(workers));
    assert_int_equal(mk_test_fixture_open(&fixture, NULL), 0);
    pthread_mutex_init(&service.lock, NULL);
    mk_list_init(&service.workers);
    for (unsigned i = 0; i < MK_COUNT_OF(workers); i++) {
        workers[i] = (struct service_worker){.loop = &fixture.loop, .index = i, .current = 1, .thread = pthread_self()};
        mk_test_slots_open(&slots[i], &service, &workers[i]);
        assert_int_equal(inbox_open(&workers[i]), 0);
        mk_list_add(&service.workers, &workers[i].node);
    }
    everies_of(&service)->first = &every;
    return 0;
}

static int end(void **state)
{
    (void)state;
    mk_timer_cancel(&every.timer);
    for (unsigned i = 0; i < MK_COUNT_OF(workers); i++)
        inbox_close(&workers[i]);
    for (unsigned i = 0; i < MK_COUNT_OF(workers); i++)
        mk_test_slots_close(&slots[i]);
    pthread_mutex_destroy(&service.lock);
    mk_test_fixture_close(&fixture);
    return 0;
}

static void do_nothing(void *data)
{
    (void)data;
}

static void read_inbox(struct service_worker *w)
{
    struct mk_event *event = &inbox_of(w)->event;
    event->ready(event, EPOLLIN);
}

/* Whatever waits in the inbox of the other workers; one that does not serve itself takes nothing. */
TEST(another_worker_takes_over, begin, end)
{
    struct inbox_call call = {.fn = do_nothing};
    every_begin(&workers[0]);
    every_begin(&workers[2]);
    assert_ptr_equal(atomic_load(&everies_of(&service)->worker), &workers[0]);
    while (inbox_add(inbox_of(&workers[2]), &call) == 0)
        continue;
    workers[0].current = workers[1].current = 0;
    every_end(&workers[0]);
    assert_null(atomic_load(&everies_of(&service)->worker));
    read_inbox(&workers[0]);
    read_inbox(&workers[1]);
    assert_null(atomic_load(&everies_of(&service)->worker));
    read_inbox(&workers[2]);
    assert_ptr_equal(atomic_load(&everies_of(&service)->worker), &workers[2]);
    assert_ptr_equal(every.worker, &workers[2]);
    every_end(&workers[1]); /* has none */
    assert_ptr_equal(atomic_load(&everies_of(&service)->worker), &workers[2]);
}
