// SPDX-License-Identifier: Apache-2.0
/* The threads of a service that run its tasks: the order, the limits, and the end. */
#include "testing.h"

#include <errno.h>
#include <semaphore.h>

#include "harness.h"
#include "service_slots.h"

#include "duda/core/common/current.h"
#include "duda/core/common/heap.h"
#include "duda/core/service/inbox.h"
#include "duda/core/task/task.h"

#include <monkey/base/buf.h>

static struct service service;
static struct service_worker worker;
static struct mk_test_slots slots;
static struct mk_test_fixture fixture;
static struct duda_task_conf conf;
static struct task_pool *pool;
static sem_t begun, may_end, ended;
static char trail[16];

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    memset(trail, 0, sizeof(trail));
    assert_int_equal(mk_test_fixture_open(&fixture, NULL), 0);
    worker = (struct service_worker){.loop = &fixture.loop, .thread = pthread_self()};
    mk_test_slots_open(&slots, &service, &worker);
    mk_list_init(&service.workers);
    pthread_mutex_init(&service.lock, NULL);
    service.self.name = (struct duda_string){(char *)(uintptr_t) "test", 4};
    sem_init(&begun, 0, 0);
    sem_init(&may_end, 0, 0);
    sem_init(&ended, 0, 0);
    assert_int_equal(inbox_open(&worker), 0);
    assert_int_equal(tasks_init(&worker), 0);
    conf = (struct duda_task_conf){.threads = 1, .queue = 2};
    task_service_of(&service)->conf = &conf;
    pool = task_pool_get(&service);
    assert_non_null(pool);
    assert_ptr_equal(task_pool_get(&service), pool);
    return 0;
}

static int end(void **state)
{
    (void)state;
    task_pool_release(&service);
    assert_null(task_service_of(&service)->pool);
    inbox_close(&worker);
    pthread_mutex_destroy(&service.lock);
    mk_test_slots_close(&slots);
    mk_test_fixture_close(&fixture);
    return 0;
}

static void stop_pool(void)
{
    MK_BUF_ON_STACK(left, 96);
    task_pool_stop(&service, &left);
    assert_int_equal(left.len, 0);
    assert_true(task_pool_join(&service));
}

static void note_letter(void *data)
{
    assert_ptr_equal(current.service, &service);
    assert_ptr_equal(task_pool_running()->data, data);
    trail[strlen(trail)] = *(char *)data; /* one thread */
}

static void block(void *data)
{
    sem_post(&begun);
    sem_wait(&may_end);
    note_letter(data);
}

static void drop_letter(void *data)
{
    trail[strlen(trail)] = (char)(*(char *)data - 'a' + 'A');
    sem_post(&ended);
}

/* In the memory of the test, so that it must have a worker, which takes it back. */
static struct task make_task(duda_call_fn fn, const char *letter, struct duda_serial_queue *serial)
{
    return (struct task){.pool = pool,
                         .worker = &worker,
                         .kind = {.fn = fn},
                         .data = (void *)(uintptr_t)letter,
                         .item = {.serial = serial}};
}

static int add_task(struct task *t)
{
    mk_list_init(&t->item.node);
    return task_pool_add(pool, t);
}

static void wait_for(const struct task *last)
{
    pthread_mutex_lock(&pool->lock);
    while (last->state != TASK_ENDED)
        pthread_cond_wait(&pool->ended, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

TEST(tasks_run_and_come_back, begin, end)
{
    struct duda_serial_queue *serial = task_pool_new_serial(&service);
    struct task a = make_task(note_letter, "a", serial), b = make_task(note_letter, "b", serial);
    struct task c = make_task(note_letter, "c", serial);
    assert_int_equal(add_task(&a), 0);
    assert_int_equal(add_task(&b), 0);
    assert_int_equal(add_task(&c), 0);
    wait_for(&c);
    assert_string_equal(trail, "abc");
    stop_pool();
    struct mk_list *list = &tasks_of(&worker)->ended;
    assert_ptr_equal(MK_LIST_FIRST(list, struct task, item.node), &a);
    assert_ptr_equal(list->prev, &c.item.node);
    task_pool_free_serial(serial);
}

/* One runs, two wait, as the service has said: another one is refused. */
TEST(the_queue_has_a_limit, begin, end)
{
    struct task all[4];
    for (unsigned i = 0; i < 4; i++)
        all[i] = make_task(i ? note_letter : block, &"abcd"[i], NULL);
    assert_int_equal(add_task(&all[0]), 0);
    sem_wait(&begun);
    assert_int_equal(add_task(&all[1]), 0);
    assert_int_equal(add_task(&all[2]), 0);
    assert_int_equal(add_task(&all[3]), -EBUSY);
    assert_true(task_pool_remove(pool, &all[1]));
    assert_true(task_pool_remove(pool, &all[1]));  /* it was */
    assert_false(task_pool_remove(pool, &all[0])); /* it runs */
    assert_int_equal(add_task(&all[3]), 0);
    sem_post(&may_end);
    wait_for(&all[3]);
    assert_string_equal(trail, "acd");
    assert_int_equal(all[1].state, TASK_REMOVED);
    stop_pool();
}

/* Its worker has gone: the thread drops the data, and frees the task. */
TEST(a_task_without_a_worker, begin, end)
{
    struct task *t = heap_zalloc(sizeof(*t));
    *t = make_task(block, "a", NULL);
    t->kind.drop = drop_letter;
    assert_int_equal(add_task(t), 0);
    sem_wait(&begun);
    pthread_mutex_lock(&pool->lock);
    t->worker = NULL;
    pthread_mutex_unlock(&pool->lock);
    sem_post(&may_end);
    sem_wait(&ended);
    assert_string_equal(trail, "aA");
    stop_pool();
}

static void note_last(struct service *s)
{
    assert_ptr_equal(s, &service);
    sem_post(&ended);
}

/* The end waits for a second; then the service stays in memory until the task has returned. */
TEST(a_task_that_does_not_return, begin, end)
{
    MK_BUF_ON_STACK(left, 96);
    struct task a = make_task(block, "a", NULL), b = make_task(note_letter, "b", NULL);
    assert_int_equal(add_task(&a), 0);
    sem_wait(&begun);
    task_pool_stop(&service, &left);
    assert_str_equal(mk_buf_str(&left), "tasks of it run (see task->stopping())");
    assert_int_equal(add_task(&b), -ESHUTDOWN);
    assert_false(task_pool_join(&service));
    task_pool_detach(&service, note_last);
    assert_int_not_equal(sem_trywait(&ended), 0);
    sem_post(&may_end);
    sem_wait(&ended);
    assert_string_equal(trail, "a");
}

TEST(without_a_pool, begin, end)
{
    MK_BUF_ON_STACK(left, 96);
    task_pool_release(&service);
    task_pool_stop(&service, &left);
    assert_int_equal(left.len, 0);
    assert_true(task_pool_join(&service));
    task_pool_detach(&service, note_last);
    assert_int_equal(sem_trywait(&ended), 0);
}
