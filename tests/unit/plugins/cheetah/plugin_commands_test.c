// SPDX-License-Identifier: Apache-2.0
/* The commands of plugins: which there are, names that clash, arguments, answers in pieces, completion. */
#include "testing.h"

#include "plugins/cheetah/cheetah.h"
#include "server/generation/generation.h"
#include "server/worker/thread.h"

#include <monkey/hooks.h>
#include <monkey/kit/json.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 3000, ROW_TEXT = 100 };

static int add_rows(struct mk_command_call *call)
{
    for (; call->at < ROWS; call->at++) {
        if (!mk_command_has_room(call))
            return MK_AGAIN;
        mk_json_format(mk_command_begin_row(call), "row", "%0*u", ROW_TEXT, (unsigned)call->at);
        mk_command_end_row(call);
    }
    return 0;
}

static int flood(struct mk_command_call *call)
{
    for (unsigned i = 0; i < ROWS * 4; i++) {
        mk_json_format(mk_command_begin_row(call), "row", "%0*u", ROW_TEXT, i);
        mk_command_end_row(call);
    }
    return 0;
}

static int add_long_row(struct mk_command_call *call)
{
    struct mk_buf *row = mk_command_begin_row(call);
    for (unsigned i = 0; i < ROWS; i++)
        mk_json_format(row, "row", "%0*u", ROW_TEXT, i);
    mk_command_end_row(call);
    mk_json_number(mk_command_begin_row(call), "row", 1);
    mk_command_end_row(call);
    return 0;
}

static int stay(struct mk_command_call *call)
{
    (void)call;
    return MK_AGAIN;
}

static int refuse(struct mk_command_call *call)
{
    return call->n_args ? mk_command_refuse(call, "write %s", "nothing") : -EIO;
}

static void offer(struct mk_command_call *call)
{
    mk_command_offer(call, call->n_args ? call->args[call->n_args - 1] : MK_STR("first"));
}

static const char *const words[] = {"open", "close", NULL};
static const struct mk_command of_one[] = {
    {.name = "rows", .arguments = "", .help = "rows", .run = add_rows},
    {.name = "door",
     .arguments = "open|close",
     .help = "a door",
     .args_min = 1,
     .args_max = 1,
     .run = stay,
     .words = words},
    {0},
};
static const struct mk_command of_two[] = {
    {.name = "flood", .arguments = "", .help = "too much", .run = flood},
    {.name = "long", .arguments = "", .help = "a long row", .run = add_long_row},
    {.name = "fail", .arguments = "[A] [B]", .help = "fails", .args_max = 2, .run = refuse, .complete = offer},
    {0},
};
static const struct mk_command of_rival[] = {{.name = "Rows", .run = stay}, {0}};
static const struct mk_command of_usurper[] = {{.name = "status", .run = stay}, {0}};
static const struct mk_inspect_hooks hooks_of_one = {.commands = of_one}, hooks_of_two = {.commands = of_two},
                                     hooks_of_rival = {.commands = of_rival},
                                     hooks_of_usurper = {.commands = of_usurper};
static const struct mk_plugin one = {.name = "one", .inspection = &hooks_of_one},
                              two = {.name = "two", .inspection = &hooks_of_two}, none = {.name = "none"},
                              rival = {.name = "rival", .inspection = &hooks_of_rival},
                              usurper = {.name = "usurper", .inspection = &hooks_of_usurper};

/* A client without a socket: what it is sent stays in `out`. */
static struct mk_generation generation;
static struct mk__thread server_thread;
static struct thread thread;
static struct mk_thread_worker of_thread;
static struct client client;
static char error_text[256];

static int open_client(void **state)
{
    (void)state;
    struct mk_worker *worker = calloc(1, sizeof(*worker));
    generation = (struct mk_generation){.plugins = {&one, &none, &two}, .n_plugins = 3, .number = 7};
    worker->generation = &generation;
    worker->request_refs = &server_thread.request_refs;
    server_thread.worker = worker;
    of_thread.worker = worker;
    mk_list_init(&thread.base.workers);
    mk_list_add(&thread.base.workers, &of_thread.node);
    client = (struct client){.thread = &thread, .pid = 4711, .uid = 5};
    mk_buf_init(&client.out, CLIENT_OUT_MAX);
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    if (client.run)
        client.run->stop(client.run);
    mk_buf_release(&client.out);
    free(of_thread.worker);
    return 0;
}

static void run(const char *line)
{
    static char copy[256];
    static struct words split;
    client.out.len = 0;
    snprintf(copy, sizeof(copy), "%s", line);
    assert_null(words_split(copy, strlen(copy), &split));
    commands_run(&client, &split);
}

/* Runs a line whose answer has no pieces. */
static const char *ask(const char *line)
{
    run(line);
    if (client.run)
        client.run->resume(client.run);
    assert_null(client.run);
    return mk_buf_cstr(&client.out);
}

static unsigned count(const char *what)
{
    unsigned n = 0;
    for (const char *at = mk_buf_cstr(&client.out); (at = strstr(at, what)); at++)
        n++;
    return n;
}

static bool is_own(struct mk_str name)
{
    return commands_find(name) != NULL;
}

static void check(const struct mk_plugin *last, const char *sentence)
{
    struct mk_buf error;
    mk_buf_init_fixed(&error, error_text, sizeof(error_text));
    generation.plugins[generation.n_plugins++] = last;
    assert_int_equal(plugin_commands_check(&generation, is_own, &error), sentence ? -EINVAL : 0);
    assert_string_equal(mk_buf_cstr(&error), sentence ? sentence : "");
}

TEST(a_table_of_all_plugins, open_client, close_client)
{
    static const char *const names[] = {"rows", "door", "flood", "long", "fail"};
    struct plugin_command each;
    for (unsigned i = 0; i < MK_COUNT_OF(names); i++) {
        assert_true(plugin_commands_get(&generation, i, &each));
        assert_string_equal(each.command->name, names[i]);
        assert_string_equal(each.plugin, i < 2 ? "one" : "two");
    }
    assert_false(plugin_commands_get(&generation, MK_COUNT_OF(names), &each));
    assert_ptr_equal(plugin_commands_find(&generation, MK_STR("FAIL")), &of_two[2]);
    assert_null(plugin_commands_find(&generation, MK_STR("fai")));
}

TEST(names, open_client, close_client)
{
    check(&none, NULL);
    check(&rival, "the plugin rival has a command \"Rows\", which one has already");
    generation.n_plugins--;
    check(&usurper, "the plugin usurper has a command \"status\", which the shell has already");
}

TEST(arguments, open_client, close_client)
{
    assert_non_null(strstr(ask("rows x"), "rows takes no arguments"));
    assert_non_null(strstr(ask("door"), "that is not understood: write door open|close"));
    assert_non_null(strstr(ask("door shut"), "write door open|close"));
    assert_non_null(strstr(ask("door open close"), "write door open|close"));
    assert_non_null(strstr(ask("fail a b c"), "write fail [A] [B]"));
    assert_non_null(strstr(ask("rowz"), "there is no command rowz; did you mean rows?"));
}

TEST(results, open_client, close_client)
{
    assert_non_null(strstr(ask("fail a"), "\"ok\":false,\"error\":\"write nothing\""));
    assert_non_null(strstr(ask("fail"), "\"ok\":false,\"error\":\"Input/output error\""));
    assert_non_null(strstr(ask("door open"), "the command door does not advance"));
}

TEST(an_answer_in_pieces, open_client, close_client)
{
    unsigned rows = 0, pieces = 0;
    run("rows");
    for (; client.run; pieces++) {
        client.run->resume(client.run);
        assert_true(client.out.len < CLIENT_OUT_FULL + 2 * ROW_TEXT);
        rows += count("{\"row\"");
        if (client.run)
            client.out.len = 0;
    }
    assert_int_equal(rows, ROWS);
    assert_true(pieces > 3);
    assert_int_equal(count("\"ok\":true"), 1);
}

TEST(a_reload_between_two_pieces, open_client, close_client)
{
    run("rows");
    client.run->resume(client.run);
    assert_non_null(client.run);
    client.out.len = 0;
    generation.number++;
    client.run->resume(client.run);
    assert_null(client.run);
    assert_int_equal(count("{\"row\""), 0);
    assert_int_equal(count("a reload has changed the configuration; ask again"), 1);
}

TEST(a_client_that_leaves, open_client, close_client)
{
    run("rows");
    client.run->resume(client.run);
    assert_non_null(client.run); /* which close_client() stops */
}

TEST(answers_have_a_limit, open_client, close_client)
{
    ask("flood");
    assert_true(client.out.len < CLIENT_OUT_MAX && !client.out.err);
    assert_int_equal(count("the answer is too long: the rest is left out"), 1);
    assert_true(count("{\"row\"") > 1000);
    ask("long");
    assert_int_equal(count("a row of the answer is too long: it is left out"), 1);
    assert_int_equal(count("{\"row\":1}"), 1);
    assert_int_equal(count("\"ok\":true"), 1);
}

TEST(completion, open_client, close_client)
{
    ask("complete fail");
    assert_int_equal(count("{\"word\":\"first\"}"), 1);
    ask("complete fail one");
    assert_int_equal(count("{\"word\":\"one\"}"), 1);
    assert_null(strstr(ask("complete fail one two"), "word"));
    ask("complete door");
    assert_int_equal(count("{\"word\":\"open\"}\n{\"word\":\"close\"}"), 1);
    assert_null(strstr(ask("complete door open"), "word"));
    assert_null(strstr(ask("complete rows"), "word"));
    assert_null(strstr(ask("complete nothing"), "word"));
    assert_non_null(strstr(ask("complete"), "\"ok\":true"));
}

TEST(help, open_client, close_client)
{
    ask("help door");
    assert_int_equal(count("{\"command\":\"door\",\"short\":\"\",\"help\":\"a door\",\"arguments\":\"open|close\","
                           "\"plugin\":\"one\",\"_complete\":\"server\"}"),
                     1);
    ask("help");
    assert_int_equal(count("\"plugin\":\"two\""), 3);
    assert_int_equal(count("\"command\":\"complete\""), 0);
}
