// SPDX-License-Identifier: Apache-2.0
/* Global variables of services: a value for each worker and thread. */
#include "testing.h"

#include "harness.h"
#include "service_slots.h"

#include "duda/core/common/current.h"
#include "duda/core/objects.h"
#include "duda/core/service/global.h"
#include "duda/core/service/thread.h"

static const struct duda_api_global *const global = &object_global;

static struct service service;
static struct service_worker worker;
static struct mk_test_slots slots;
static struct mk_test_fixture fixture;
static char trail[16];
static int made;

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    memset(&worker, 0, sizeof(worker));
    memset(trail, 0, sizeof(trail));
    made = 0;
    assert_int_equal(mk_test_fixture_open(&fixture, NULL), 0);
    worker.loop = &fixture.loop;
    mk_test_slots_open(&slots, &service, &worker);
    mk_arena_init(&service.arena, NULL, 1 << 20, NULL, 0);
    service.self.name = (struct duda_string){(char *)(uintptr_t) "test", 4};
    current = (struct current){.service = &service}; /* duda_main() */
    return 0;
}

static int end(void **state)
{
    (void)state;
    current = (struct current){0};
    mk_arena_release(&service.arena);
    mk_test_slots_close(&slots);
    mk_test_fixture_close(&fixture);
    return 0;
}

static void *make_number(void *data)
{
    made++;
    return data;
}

static void destroy_number(void *value)
{
    trail[strlen(trail)] = *(char *)value;
}

TEST(each_worker_and_thread_has_values, begin, end)
{
    duda_global_t a, b;
    char letters[] = "abc";
    struct service_thread thread = {.service = &service};
    assert_int_equal(global->init_destroy(&a, make_number, &letters[0], destroy_number), 0);
    assert_int_equal(global->init(&b, NULL, NULL), 0);
    service.state = SERVICE_RUNS;
    struct current outer = current_enter(&service, &worker);
    assert_int_equal(global_start_worker(&worker), 0);
    assert_ptr_equal(global->get(a), &letters[0]);
    assert_null(global->get(b));
    assert_int_equal(global->set(b, &letters[1]), 0);
    assert_int_equal(global->set(a, &letters[2]), 0);
    current_leave(outer);
    current = (struct current){.service = &service, .thread = &thread};
    global_use(&thread.values);
    assert_int_equal(made, 1);
    assert_ptr_equal(global->get(a), &letters[0]); /* made when it is used first */
    assert_null(global->get(b));
    assert_int_equal(made, 2);
    global_destroy_values(&service, &thread.values);
    assert_string_equal(trail, "a");
    global_use(NULL);
    current = (struct current){0};
    global_release_worker(&worker);
    assert_string_equal(trail, "ac"); /* the value that it has now */
}

TEST(the_last_one_is_destroyed_first, begin, end)
{
    duda_global_t keys[3];
    char letters[] = "abc";
    for (int i = 0; i < 3; i++)
        assert_int_equal(global->init_destroy(&keys[i], make_number, &letters[i], destroy_number), 0);
    assert_int_equal(global_start_worker(&worker), 0);
    global_release_worker(&worker);
    assert_string_equal(trail, "cba");
    global_release_worker(&worker); /* has none any more */
    assert_string_equal(trail, "cba");
}

TEST(mistakes_do_nothing, begin, end)
{
    duda_global_t key, unknown = {77};
    assert_int_equal(global->init(NULL, NULL, NULL), -1);
    assert_int_equal(global->init(&key, NULL, NULL), 0);
    assert_null(global->get(key)); /* in duda_main() */
    assert_int_equal(global->set(key, trail), -1);
    service.state = SERVICE_RUNS;
    struct current outer = current_enter(&service, &worker);
    assert_int_equal(global_start_worker(&worker), 0);
    assert_int_equal(global->init(&key, NULL, NULL), -1); /* too late */
    assert_null(global->get(unknown));
    assert_null(global->get((duda_global_t){0}));
    assert_int_equal(global->set(unknown, trail), -1);
    current_leave(outer);
    global_release_worker(&worker);
}

static int start_worker(void *ctx)
{
    (void)ctx;
    int err = global_start_worker(&worker);
    global_release_worker(&worker);
    return err;
}

TEST(without_memory, begin, end)
{
    duda_global_t key;
    assert_int_equal(global->init(&key, NULL, NULL), 0);
    assert_int_equal(mk_test_failing_allocs(start_worker, NULL), 1);
}
