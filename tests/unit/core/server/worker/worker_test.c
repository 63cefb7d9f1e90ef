// SPDX-License-Identifier: Apache-2.0
/* Workers: the starts and stops of plugins come in pairs, and a replaced worker lives as long as it is used. */
#include "testing.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "server/worker/worker.h"

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

static unsigned retired;
static struct mk_worker *to_put; /* released by retire() */

static void retire(struct mk_worker *worker, void *state)
{
    assert_ptr_equal(state, worker->states[0]);
    retired++;
    if (to_put)
        mk_worker_put(to_put);
}

static const struct mk_plugin first = {.name = "first",
                                       .worker_start = start,
                                       .worker_stop = stop,
                                       .worker_retire = retire},
                              second = {.name = "second", .worker_start = start, .worker_stop = stop},
                              without = {.name = "without"};
static struct mk_generation generation;

static struct mk_worker *open_worker(void)
{
    starts = stops = fail_at = retired = 0;
    to_put = NULL;
    generation = (struct mk_generation){.refs = 1, .n_plugins = 3, .plugins = {&first, &second, &without}};
    struct mk_worker *worker = mk__worker_new(&generation);
    assert_non_null(worker);
    assert_int_equal(generation.refs, 2);
    return worker;
}

TEST(starts_and_stops_are_pairs)
{
    struct mk_worker *worker = open_worker();
    assert_int_equal(mk__worker_start(worker), 0);
    assert_ptr_equal(mk_worker_state(worker, &second), &worker->states[1]);
    assert_null(mk_worker_state(worker, &without));
    mk__worker_free(worker);
    assert_int_equal(starts, 2);
    assert_int_equal(stops, 2);
    assert_int_equal(generation.refs, 1);
}

TEST(a_plugin_that_did_not_start_is_not_stopped)
{
    struct mk_worker *worker = open_worker();
    fail_at = 1;
    assert_int_equal(mk__worker_start(worker), -EIO);
    mk__worker_free(worker);
    assert_int_equal(stops, 0);
}

TEST(an_unused_worker_is_freed_at_once)
{
    struct mk_worker *list = NULL;
    struct mk_worker *worker = open_worker();
    mk_worker_get(worker);
    mk_worker_put(worker); /* in use by its thread */
    assert_int_equal(generation.refs, 2);
    mk__worker_replace(worker, &list);
    assert_null(list);
    assert_int_equal(generation.refs, 1);
}

TEST(replaced_workers_are_freed_with_the_last_reference)
{
    struct mk_worker *list = NULL, *workers[3];
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

/* ── the end of a generation ── */

TEST(a_replaced_worker_is_retired_once)
{
    struct mk_worker *list = NULL;
    struct mk_worker *worker = open_worker();
    assert_int_equal(mk__worker_start(worker), 0);
    mk_worker_get(worker);
    mk__worker_replace(worker, &list);
    mk__worker_retire(worker);
    assert_int_equal(retired, 1);
    mk_worker_put(worker);
    assert_int_equal(stops, 2);
}

TEST(an_unused_worker_is_not_retired)
{
    struct mk_worker *list = NULL;
    struct mk_worker *worker = open_worker();
    assert_int_equal(mk__worker_start(worker), 0);
    mk__worker_replace(worker, &list);
    assert_int_equal(retired, 0);
    assert_int_equal(stops, 2);
}

TEST(retire_may_release_the_worker)
{
    struct mk_worker *list = NULL;
    struct mk_worker *worker = open_worker();
    assert_int_equal(mk__worker_start(worker), 0);
    to_put = mk_worker_get(worker);
    mk__worker_replace(worker, &list);
    assert_int_equal(retired, 1);
    assert_null(list);
    assert_int_equal(generation.refs, 1);
}

/* ── visits ── */

static struct {
    unsigned n;
    struct mk_worker *workers[4];
    void *states[4];
} seen;

static void see_worker(struct mk_worker *worker, void *state, void *ctx)
{
    assert_ptr_equal(ctx, &seen);
    seen.workers[seen.n] = worker;
    seen.states[seen.n++] = state;
}

static unsigned count_visited(const struct mk_plugin *plugin)
{
    seen.n = 0;
    mk_plugin_each_worker(plugin, see_worker, &seen);
    return seen.n;
}

TEST(a_visit_finds_the_workers_that_have_started)
{
    struct mk_worker *list = NULL, *older, *newer;
    older = open_worker();
    assert_int_equal(count_visited(&second), 0);
    assert_int_equal(mk__worker_start(older), 0);
    mk_worker_get(older);
    mk__worker_replace(older, &list);
    newer = open_worker();
    generation.refs = 3; /* open_worker() has reset it */
    assert_int_equal(mk__worker_start(newer), 0);
    assert_int_equal(count_visited(&second), 2); /* that of the older generation has an exchange */
    assert_ptr_equal(seen.workers[1], newer);
    assert_ptr_equal(seen.states[1], mk_worker_state(newer, &second));
    mk__worker_free(newer);
    assert_int_equal(count_visited(&second), 1);
    assert_ptr_equal(seen.workers[0], older);
    starts = 2;
    stops = 0;
    mk_worker_put(older);
    assert_int_equal(count_visited(&second), 0);
}

static const struct mk_plugin counted;

/* Reads the state during worker_stop: it must not be visited any more. */
static void stop_counted(struct mk_worker *worker, void *state)
{
    (void)worker;
    (void)state;
    assert_int_equal(count_visited(&counted), 0);
    stops++;
}

static const struct mk_plugin counted = {.name = "counted", .worker_stop = stop_counted};

TEST(a_worker_that_stops_is_not_visited)
{
    generation = (struct mk_generation){.refs = 1, .n_plugins = 1, .plugins = {&counted}};
    struct mk_worker *worker = mk__worker_new(&generation);
    stops = 0;
    assert_non_null(worker);
    assert_int_equal(mk__worker_start(worker), 0);
    assert_int_equal(count_visited(&counted), 1);
    mk__worker_free(worker);
    assert_int_equal(stops, 1);
}

/* A worker that ends waits for the visit. */
static struct {
    sem_t visits, ends;
    _Atomic bool ended;
} race;

static void *end_worker(void *worker)
{
    sem_wait(&race.visits);
    sem_post(&race.ends);
    mk__worker_free(worker);
    race.ended = true;
    return NULL;
}

static void visit_slowly(struct mk_worker *worker, void *state, void *ctx)
{
    (void)ctx;
    sem_post(&race.visits);
    sem_wait(&race.ends);
    for (unsigned i = 0; i < 1000; i++)
        sched_yield(); /* time for a free that does not wait */
    assert_false(race.ended);
    assert_ptr_equal(mk_worker_state(worker, &second), state);
}

TEST(no_state_is_freed_during_a_visit)
{
    pthread_t thread;
    struct mk_worker *worker = open_worker();
    assert_int_equal(mk__worker_start(worker), 0);
    sem_init(&race.visits, 0, 0);
    sem_init(&race.ends, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, end_worker, worker), 0);
    mk_plugin_each_worker(&second, visit_slowly, NULL);
    pthread_join(thread, NULL);
    assert_true(race.ended);
    assert_int_equal(stops, 2);
}
