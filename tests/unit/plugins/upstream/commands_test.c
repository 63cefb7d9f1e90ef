// SPDX-License-Identifier: Apache-2.0
/* The commands `upstreams` and `upstream`: rows, arguments, and what they change. */
#include "testing.h"

#include "command_call.h"
#include "harness.h"
#include "plugins/upstream/groups.h"
#include "server/generation/generation.h"
#include "server/worker/worker.h"

#include <errno.h>
#include <stdlib.h>

extern const struct mk_plugin mk_plugin_upstream;

enum { LIST, CHANGE, GROUPS = 3, SERVERS = 2 };

static struct mk_test_fixture fixture;
static struct mk_generation generation;
static struct mk_worker *worker;
static struct mk_test_call call;
static struct server_line lines[] = {{.name = MK_STR("127.0.0.1:1"), .weight = 1},
                                     {.name = MK_STR("unix:/run/b"), .weight = 2, .is_draining = true}};
static struct upstream_conf confs[GROUPS] = {{.name = MK_STR("a")}, {.name = MK_STR("b")}, {.name = MK_STR("c")}};
static struct mk_upstream_group *groups[GROUPS];
static struct names names;
static const struct mk_upstream_outcome refused = {.err = -ECONNREFUSED};

/* The state of the plugin begins with its first group. */
static int open_groups(void **state)
{
    (void)state;
    names_init(&names);
    for (unsigned i = 0; i < GROUPS; i++) {
        confs[i].servers = (struct server_lines){lines, SERVERS};
        confs[i].eject_after = confs[i].eject_time_ms = 1;
        confs[i].eject_time_ms = 90001;
        groups[i] = group_make(&confs[i], &names);
        if (i)
            groups[i - 1]->next = groups[i];
    }
    generation.plugins[0] = &mk_plugin_upstream;
    generation.states[0] = &groups[0];
    generation.n_plugins = 1;
    worker = calloc(1, sizeof(*worker) + sizeof(void *));
    worker->generation = &generation;
    worker->loop = &fixture.loop;
    return mk_test_fixture_open(&fixture, NULL);
}

static int close_groups(void **state)
{
    (void)state;
    for (unsigned i = 0; i < GROUPS; i++)
        group_free(groups[i]);
    free(worker);
    mk_test_fixture_close(&fixture);
    return 0;
}

/* Runs a command. Returns its rows; NULL: it was refused. */
static const char *run(unsigned command, const char *args)
{
    mk_test_call_init(&call, worker, args);
    return upstream_commands[command].run(&call.base) == 0 ? mk_test_call_take(&call) : NULL;
}

static const char *complete(unsigned command, const char *args)
{
    mk_test_call_init(&call, worker, args);
    upstream_commands[command].complete(&call.base);
    return mk_test_call_take(&call);
}

static void assert_refused(const char *args, const char *sentence)
{
    assert_null(run(CHANGE, args));
    assert_string_equal(call.error, sentence);
    assert_int_equal(atomic_load(&group_members(groups[0])->items[0].server->admin->state), ADMIN_UNSET);
    assert_int_equal(atomic_load(&group_members(groups[0])->items[0].server->admin->weight_plus), 0);
}

TEST(a_list, open_groups, close_groups)
{
    assert_string_equal(
        run(LIST, "B"),
        "{group:b,server:127.0.0.1:1,state:up,weight:1,active:0,requests:0,failures:0,ejections:0,conf_state:up,"
        "conf_weight:1,backup:false}\n"
        "{group:b,server:unix:/run/b,state:drain,weight:2,active:0,requests:0,failures:0,ejections:0,"
        "conf_state:drain,conf_weight:2,backup:false}\n");
    assert_null(run(LIST, "nothing"));
    assert_string_equal(call.error, "there is no group nothing; upstreams lists them");
}

TEST(a_list_in_pieces, open_groups, close_groups)
{
    mk_test_call_init(&call, worker, "");
    for (unsigned i = 0; i < GROUPS; i++) {
        char start[32];
        call.rows_max = 1;
        assert_int_equal(upstream_commands[LIST].run(&call.base), i + 1 < GROUPS ? MK_AGAIN : 0);
        assert_int_equal(call.rows, SERVERS);
        snprintf(start, sizeof(start), "{group:%c,", 'a' + (int)i);
        assert_memory_equal(mk_test_call_take(&call), start, strlen(start));
    }
}

TEST(an_ejected_server, open_groups, close_groups)
{
    struct server *server = group_members(groups[0])->items[0].server;
    server_note_failure(server, &confs[0], &refused, NULL, mk_loop_now_ms(&fixture.loop));
    assert_non_null(strstr(run(LIST, "a"), "state:ejected,ejected_s:91,weight:1"));
    assert_non_null(strstr(run(CHANGE, "a 127.0.0.1:1 up"), "state:up,weight:1"));
    assert_false(server_is_ejected(server, mk_loop_now_ms(&fixture.loop)));
    server_note_failure(server, &confs[0], &refused, NULL, mk_loop_now_ms(&fixture.loop));
    assert_non_null(strstr(run(CHANGE, "a 127.0.0.1:1 drain"), "state:drain,weight:1"));
    assert_false(server_is_ejected(server, mk_loop_now_ms(&fixture.loop)));
}

TEST(changes, open_groups, close_groups)
{
    assert_non_null(strstr(run(CHANGE, "a 127.0.0.1:1 down"), "state:down,weight:1"));
    assert_non_null(strstr(call.out.data, "conf_state:up,conf_weight:1,backup:false,shell_state:down}"));
    assert_string_equal(call.warning, "no server of the group a gets new requests now");
    assert_non_null(strstr(run(CHANGE, "a unix:/run/b up"), "state:up,"));
    assert_string_equal(call.warning, "");
    assert_non_null(strstr(run(CHANGE, "a unix:/run/b weight 0"), "weight:0,"));
    assert_non_null(strstr(call.out.data, "shell_state:up,shell_weight:0}"));
    assert_non_null(strstr(run(CHANGE, "a unix:/run/b reset"), "state:drain,weight:2"));
    assert_null(strstr(call.out.data, "shell"));
    assert_non_null(strstr(run(LIST, "b"), "state:up")); /* the same server in another group */
    run(CHANGE, "a 127.0.0.1:1 reset");
}

/* Only when the server had no requests before. */
TEST(slow_starts, open_groups, close_groups)
{
    struct server *server = group_members(groups[0])->items[0].server;
    uint64_t now = mk_loop_now_ms(&fixture.loop);
    run(CHANGE, "a 127.0.0.1:1 up");
    assert_int_equal(atomic_load(&server->slow_from_ms), 0);
    run(CHANGE, "a 127.0.0.1:1 weight 0");
    assert_int_equal(atomic_load(&server->slow_from_ms), 0);
    run(CHANGE, "a 127.0.0.1:1 reset");
    assert_int_equal(atomic_load(&server->slow_from_ms), now);
    mk_test_pass(&fixture, 5);
    run(CHANGE, "a 127.0.0.1:1 drain");
    run(CHANGE, "a 127.0.0.1:1 drain");
    assert_int_equal(atomic_load(&server->slow_from_ms), now);
    run(CHANGE, "a 127.0.0.1:1 up");
    assert_int_equal(atomic_load(&server->slow_from_ms), now + 5);
    run(CHANGE, "a 127.0.0.1:1 reset");
    assert_int_equal(atomic_load(&server->slow_from_ms), now + 5);
}

TEST(wrong_actions, open_groups, close_groups)
{
    static const char expected[] = "behind the server is expected: up, drain, down, weight N or reset";
    assert_refused("x 127.0.0.1:1 up", "there is no group x; upstreams lists them");
    assert_refused("a 127.0.0.1:2 up", "the group a has no server 127.0.0.1:2; upstreams a lists them");
    assert_refused("a 127.0.0.1:1 off", expected);
    assert_refused("a 127.0.0.1:1 down 1", expected);
    assert_refused("a 127.0.0.1:1 reset 1", expected);
    assert_refused("a 127.0.0.1:1 weight", "a weight is a number from 0 to 256");
    assert_refused("a 127.0.0.1:1 weight 257", "a weight is a number from 0 to 256");
    assert_refused("a 127.0.0.1:1 weight -1", "a weight is a number from 0 to 256");
}

TEST(completion, open_groups, close_groups)
{
    assert_string_equal(complete(LIST, ""), "a b c ");
    assert_string_equal(complete(CHANGE, ""), "a b c ");
    assert_string_equal(complete(CHANGE, "b"), "127.0.0.1:1 unix:/run/b ");
    assert_string_equal(complete(CHANGE, "x"), "");
    assert_string_equal(complete(CHANGE, "b 127.0.0.1:1"), "up drain down weight reset ");
    assert_string_equal(complete(CHANGE, "b 127.0.0.1:1 weight"), "");
}
