// SPDX-License-Identifier: Apache-2.0
/* What runs once for all workers: with the first worker of the generation in use, and with one at a time. */
#include "testing.h"

#include "loop/loop.h"
#include "server/worker/worker.h"

#include "plugins/upstream/checks.h"

enum { LOOPS = 2, GENERATIONS = 3, USERS = 2 };

static struct user {
    struct runner_user base;
    struct mk_worker *worker; /* while it runs */
    unsigned starts;
} users[GENERATIONS][USERS];
static struct runners all;
static struct runner runners[GENERATIONS];
static struct mk_loop loops[LOOPS];
static struct mk_worker workers[GENERATIONS][2];
static char order[64]; /* of starts and stops */

static void note(char what, const struct user *user)
{
    size_t len = strlen(order), at = (size_t)(user - &users[0][0]);
    order[len++] = what;
    order[len++] = (char)('0' + at / USERS);
    order[len++] = (char)('a' + at % USERS);
    order[len] = '\0';
}

static void start_user(struct runner_user *base, struct mk_worker *worker)
{
    struct user *user = MK_CONTAINER_OF(base, struct user, base);
    assert_null(user->worker);
    user->worker = worker;
    user->starts++;
    note('+', user);
}

static void stop_user(struct runner_user *base)
{
    struct user *user = MK_CONTAINER_OF(base, struct user, base);
    assert_non_null(user->worker);
    user->worker = NULL;
    note('-', user);
}

/* Two generations of one server, in the thread of the first loop, and one of another server. */
static int set_up(void **state)
{
    (void)state;
    order[0] = '\0';
    runners_init(&all);
    for (unsigned g = 0; g < GENERATIONS; g++) {
        runner_init(&runners[g]);
        for (unsigned u = 0; u < USERS; u++) {
            users[g][u] = (struct user){.base = {.start = start_user, .stop = stop_user}};
            runner_add(&runners[g], &users[g][u].base);
        }
        for (unsigned w = 0; w < 2; w++)
            workers[g][w] = (struct mk_worker){.loop = &loops[g == 2], .index = w};
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    runners_release(&all);
    return 0;
}

static void start(unsigned g)
{
    for (unsigned w = 0; w < 2; w++)
        runner_start(&all, &runners[g], &workers[g][w]);
}

static void stop(unsigned g)
{
    for (unsigned w = 2; w-- > 0;)
        runner_stop(&all, &runners[g], &workers[g][w]);
}

TEST(once_with_the_first_worker, set_up, tear_down)
{
    start(0);
    assert_string_equal(order, "+0a+0b");
    assert_ptr_equal(users[0][0].worker, &workers[0][0]);
    stop(0);
    assert_string_equal(order, "+0a+0b-0b-0a");
    stop(0); /* worker_stop behind worker_retire */
    assert_int_equal(users[0][1].starts, 1);
}

/* The worker of the generation before may last, with its requests. */
TEST(one_generation_at_a_time, set_up, tear_down)
{
    start(0);
    start(1);
    assert_string_equal(order, "+0a+0b-0b-0a+1a+1b");
    stop(0);
    assert_non_null(users[1][0].worker);
    stop(1);
    assert_string_equal(order, "+0a+0b-0b-0a+1a+1b-1b-1a");
}

TEST(servers_of_one_process, set_up, tear_down)
{
    start(0);
    start(2);
    assert_non_null(users[0][0].worker);
    assert_ptr_equal(users[2][0].worker, &workers[2][0]);
    stop(0);
    assert_non_null(users[2][0].worker);
    stop(2);
}

/* A generation that is refused: its workers stop, and never served. */
TEST(never_started, set_up, tear_down)
{
    start(0);
    stop(1);
    assert_non_null(users[0][0].worker);
    stop(0);
    assert_int_equal(users[1][0].starts, 0);
}
