// SPDX-License-Identifier: Apache-2.0
/* Plugins of generations: which are started, checked and stopped, and how often. */
#include "testing.h"

#include <errno.h>

#include "server/plugins/plugins.h"

static char calls[64];
static int start_err;

static void note(char call)
{
    calls[strlen(calls)] = call;
}

static int process; /* the state of start */

static int start(void **ret_state)
{
    note('s');
    *ret_state = &process;
    return 0;
}

static void stop(void *state)
{
    assert_ptr_equal(state, &process);
    note('e');
}

static int start_generation(struct mk_generation *g, void **ret_state)
{
    (void)g;
    (void)ret_state;
    note('S');
    return start_err;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    (void)g;
    (void)state;
    note('E');
}

static int check_generation(struct mk_generation *g, void *state)
{
    (void)g;
    (void)state;
    note('C');
    return 0;
}

static const struct mk_plugin plugin = {.name = "plugin",
                                        .start = start,
                                        .stop = stop,
                                        .generation_start = start_generation,
                                        .generation_stop = stop_generation,
                                        .generation_check = check_generation};

static void open_generation(struct mk_generation *g, int err)
{
    start_err = err;
    *g = (struct mk_generation){.refs = 1, .conf = mk__conf_new(), .n_plugins = 1, .plugins = {&plugin}};
    assert_non_null(g->conf);
    assert_int_equal(mk__plugins_start(g), 0);
    assert_int_equal(mk__plugins_check(g), 0);
}

static void close_generation(struct mk_generation *g)
{
    mk__plugins_stop(g);
    mk__conf_free(g->conf);
}

TEST(generations_share_the_start)
{
    struct mk_generation one, two;
    memset(calls, 0, sizeof(calls));
    open_generation(&one, 0);
    open_generation(&two, 0);
    close_generation(&one);
    close_generation(&two);
    assert_string_equal(calls, "sSCSCEEe");
}

TEST(generations_share_the_state_of_start)
{
    static const struct mk_plugin other = {.name = "other"};
    struct mk_generation one, two;
    open_generation(&one, 0);
    open_generation(&two, 0);
    assert_ptr_equal(mk_generation_plugin_state(&one, &plugin), &process);
    close_generation(&one);
    assert_ptr_equal(mk_generation_plugin_state(&two, &plugin), &process);
    assert_null(mk_generation_plugin_state(&two, &other));
    close_generation(&two);
}

TEST(a_failed_start_is_reported)
{
    struct mk_generation one;
    memset(calls, 0, sizeof(calls));
    open_generation(&one, -EIO);
    assert_int_equal(mk__conf_errors(one.conf), 1);
    assert_int_equal(one.failed, 1);
    close_generation(&one);
    assert_string_equal(calls, "sSe"); /* neither checked nor stopped for the generation */
}
