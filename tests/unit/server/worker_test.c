// SPDX-License-Identifier: Apache-2.0
/* Workers: the starts and stops of plugins come in pairs, and a replaced worker lives as long as it is used. */
#include "testing.h"

#include <errno.h>

#include "server/worker.h"

static unsigned starts, stops, fail_at;

static int start(struct mk_worker *worker, void **ret_state)
{
    *ret_state = &worker->states[starts];
    return ++starts == fail_at ? -EIO : 0;
}

static void stop(struct mk_worker *worker, void *state)
{
    stops++;
    assert_ptr_equal(state, &worker->states[starts - stops]); /* in the opposite order */
}

static const struct mk_plugin first = {.name = "first", .worker_start = start, .worker_stop = stop},
                              second = {.name = "second", .worker_start = start, .worker_stop = stop},
                              without = {.name = "without"};
static struct mk_generation generation;

static struct mk_worker *open_worker(void)
{
    starts = stops = fail_at = 0;
    generation = (struct mk_generation){.refs = 1, .n_plugins = 3, .plugins = {&first, &second, &without}};
    struct mk_worker *worker = mk__worker_new(&generation);
    assert_non_null(worker);
    assert_int_equal(generation.refs, 2);
    return worker;
}

static void test_starts_and_stops_are_pairs(void **state)
{
    (void)state;
    struct mk_worker *worker = open_worker();
    assert_int_equal(mk__worker_start(worker), 0);
    assert_ptr_equal(mk_worker_state(worker, &second), &worker->states[1]);
    assert_null(mk_worker_state(worker, &without));
    mk__worker_free(worker);
    assert_int_equal(starts, 2);
    assert_int_equal(stops, 2);
    assert_int_equal(generation.refs, 1);
}

static void test_a_plugin_that_did_not_start_is_not_stopped(void **state)
{
    (void)state;
    struct mk_worker *worker = open_worker();
    fail_at = 1;
    assert_int_equal(mk__worker_start(worker), -EIO);
    mk__worker_free(worker);
    assert_int_equal(stops, 0);
}

static void test_an_unused_worker_is_freed_at_once(void **state)
{
    struct mk_worker *list = NULL;
    (void)state;
    struct mk_worker *worker = open_worker();
    mk_worker_get(worker);
    mk_worker_put(worker); /* in use by its thread */
    assert_int_equal(generation.refs, 2);
    mk__worker_replace(worker, &list);
    assert_null(list);
    assert_int_equal(generation.refs, 1);
}

static void test_replaced_workers_are_freed_with_the_last_reference(void **state)
{
    struct mk_worker *list = NULL, *workers[3];
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        workers[i] = open_worker();
        mk_worker_get(workers[i]);
        mk__worker_replace(workers[i], &list);
    }
    generation.refs = 4; /* open_worker() has reset it */
    assert_ptr_equal(list, workers[2]);
    mk_worker_put(workers[1]);
    assert_ptr_equal(list->next, workers[0]);
    mk_worker_put(workers[2]);
    assert_ptr_equal(list, workers[0]);
    mk_worker_put(workers[0]);
    assert_null(list);
    assert_int_equal(generation.refs, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_and_stops_are_pairs),
        cmocka_unit_test(test_a_plugin_that_did_not_start_is_not_stopped),
        cmocka_unit_test(test_an_unused_worker_is_freed_at_once),
        cmocka_unit_test(test_replaced_workers_are_freed_with_the_last_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
