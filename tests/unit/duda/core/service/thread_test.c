// SPDX-License-Identifier: Apache-2.0
/* Threads of a service's own: their begin, and the three ways in which they end. */
#include "testing.h"

#include <errno.h>
#include <semaphore.h>
#include <sys/eventfd.h>

#include "service_slots.h"

#include "duda/core/common/current.h"
#include "duda/core/event/signals.h"
#include "duda/core/service/thread.h"

#include <monkey/base/buf.h>

static struct service service;
static struct service_worker worker;
static struct mk_test_slots slots;
static sem_t begun, may_end, ended;
static _Atomic unsigned lasts;

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    memset(&worker, 0, sizeof(worker));
    mk_test_slots_open(&slots, &service, &worker);
    mk_arena_init(&service.arena, NULL, 1 << 20, NULL, 0);
    service.self.name = (struct duda_string){(char *)(uintptr_t) "test", 4};
    sem_init(&begun, 0, 0);
    sem_init(&may_end, 0, 0);
    sem_init(&ended, 0, 0);
    lasts = 0;
    signals_init(&service);
    return thread_init(&service);
}

static int end(void **state)
{
    (void)state;
    thread_release(&service);
    signals_release(&service);
    mk_arena_release(&service.arena);
    mk_test_slots_close(&slots);
    return 0;
}

static void *wait_for_end(void *arg)
{
    assert_ptr_equal(current.service, &service);
    assert_ptr_equal(current.thread->arg, arg);
    sem_post(&begun);
    uint64_t count;
    eventfd_read(threads_of(&service)->stop_fd, &count);
    return NULL;
}

static void *ignore_end(void *arg)
{
    (void)arg;
    sem_post(&begun);
    sem_wait(&may_end);
    return NULL;
}

static void note_last(struct service *s)
{
    assert_ptr_equal(s, &service);
    lasts++;
    sem_post(&ended);
}

TEST(they_start_once_and_are_asked_to_return, begin, end)
{
    MK_BUF_ON_STACK(left, 96);
    assert_int_equal(thread_add(&service, wait_for_end, &lasts), 0);
    assert_int_equal(thread_start_all(&worker), 0);
    assert_int_equal(thread_start_all(&worker), 0); /* another worker */
    sem_wait(&begun);
    assert_int_not_equal(sem_trywait(&begun), 0);
    thread_stop_all(&service, &left);
    assert_int_equal(left.len, 0);
    assert_true(thread_join_all(&service));
    thread_detach_all(&service, note_last); /* at once */
    assert_int_equal(lasts, 1);
}

/* It is waited for for a second; the service stays in memory until it has ended. */
TEST(one_that_does_not_return, begin, end)
{
    MK_BUF_ON_STACK(left, 96);
    assert_int_equal(thread_add(&service, ignore_end, NULL), 0);
    assert_int_equal(thread_start_all(&worker), 0);
    sem_wait(&begun);
    thread_stop_all(&service, &left);
    assert_str_equal(mk_buf_str(&left), "1 of its threads have not returned (see worker->stopping())");
    assert_false(thread_join_all(&service));
    thread_detach_all(&service, note_last);
    assert_int_equal(lasts, 0);
    sem_post(&may_end);
    sem_wait(&ended); /* called by the thread itself */
    assert_int_equal(lasts, 1);
    assert_int_equal(threads_of(&service)->running, 0);
}

static void *exit_thread(void *arg)
{
    (void)arg;
    pthread_exit(NULL);
}

/* Of the original API: the service creates it, and it may use the objects. */
TEST(a_thread_of_the_service, begin, end)
{
    pthread_t id;
    current = (struct current){.service = &service};
    assert_int_equal(thread_create_own(&id, NULL, exit_thread, NULL), 0);
    pthread_join(id, NULL);
    assert_int_equal(threads_of(&service)->running, 0);
    current = (struct current){0};
}

TEST(there_is_a_limit, begin, end)
{
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal(thread_add(&service, wait_for_end, NULL), 0);
    assert_int_equal(thread_add(&service, wait_for_end, NULL), -EAGAIN);
    assert_int_equal(threads_of(&service)->n, 256);
}
