// SPDX-License-Identifier: Apache-2.0
/* Generations that end later: freed in the control thread, but not while the hooks of plugins run elsewhere. */
#include "testing.h"

#include <stdatomic.h>
#include <unistd.h>

#include "server/worker/control_thread.h"
#include "server/generation/generation_load.h"
#include "server/plugins/module.h"

static _Atomic unsigned stops;
static pthread_t caller;

static void stop_generation(struct mk_generation *g, void *state)
{
    (void)g;
    (void)state;
    assert(!pthread_equal(pthread_self(), caller));
    stops++;
}

static void stop_in_caller(struct mk_generation *g, void *state)
{
    (void)g;
    (void)state;
    assert(pthread_equal(pthread_self(), caller));
    stops++;
}

static const struct mk_plugin elsewhere = {.name = "elsewhere", .generation_stop = stop_generation},
                              here = {.name = "here", .generation_stop = stop_in_caller};

static struct mk_generation *new_generation(const struct mk_plugin *plugin)
{
    struct mk_generation *g = mk_account_alloc(NULL, sizeof(*g));
    assert_non_null(g);
    *g = (struct mk_generation){.refs = 1, .n_plugins = 1, .plugins = {plugin}, .started = 1};
    mk_arena_init(&g->arena, NULL, 1024, NULL, 0);
    return g;
}

static struct mk__control_thread *open_thread(void)
{
    struct mk__control_thread *p = NULL;
    stops = 0;
    caller = pthread_self();
    assert_int_equal(mk__control_thread_open(&p), 0);
    return p;
}

static void put_watched(struct mk__control_thread *p, const struct mk_plugin *plugin)
{
    struct mk_generation *g = new_generation(plugin);
    mk__control_thread_watch_generation(p, g);
    mk__generation_put(g);
}

TEST(stops_in_its_thread)
{
    struct mk__control_thread *p = open_thread();
    put_watched(p, &elsewhere);
    while (!stops)
        usleep(100);
    mk__control_thread_free(p);
    assert_int_equal(stops, 1);
}

TEST(waits_for_the_hooks)
{
    struct mk__control_thread *p = open_thread();
    mk__module_lock_hooks();
    put_watched(p, &elsewhere);
    put_watched(p, &elsewhere);
    usleep(30 * 1000);
    assert_int_equal(stops, 0);
    mk__module_unlock_hooks();
    while (stops < 2)
        usleep(100);
    mk__control_thread_free(p);
    assert_int_equal(stops, 2);
}

static void *hold_hooks(void *ctx)
{
    mk__module_lock_hooks();
    *(_Atomic bool *)ctx = true;
    usleep(50 * 1000);
    mk__module_unlock_hooks();
    return NULL;
}

/* What could not be freed yet is freed by the thread that ends the control thread. */
TEST(the_end_frees_what_is_left)
{
    _Atomic bool held = false;
    pthread_t other;
    struct mk__control_thread *p = open_thread();
    assert_int_equal(pthread_create(&other, NULL, hold_hooks, &held), 0);
    while (!held)
        usleep(100);
    put_watched(p, &here);
    put_watched(p, &here);
    mk__control_thread_free(p);
    pthread_join(other, NULL);
    assert_int_equal(stops, 2);
}
