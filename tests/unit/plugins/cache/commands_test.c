// SPDX-License-Identifier: Apache-2.0
/* The command `cache`: its figures, and clearing the cache. */
#include "fixture.h"

#include "command_call.h"
#include "plugins/cache/calls.h"

static struct mk_test_call call;

static const char *run(const char *args)
{
    mk_test_call_init(&call, site.worker, args);
    assert_int_equal(cache_commands[0].run(&call.base), 0);
    return mk_test_call_take(&call);
}

TEST(figures_of_the_cache)
{
    open_cache("", "");
    ask("a.txt");
    ask("a.txt");
    ask("a.txt");
    const char *text = run("");
    assert_non_null(strstr(text, ",misses:2,"));
    assert_non_null(strstr(text, "{hits:1,"));
    assert_non_null(strstr(text, ",body_entries:1,body_evicted:0,body_bytes:"));
    assert_non_null(strstr(text, ",descriptor_entries:0,descriptor_evicted:0,descriptor_bytes:0,"));
    close_cache();
}

TEST(cleared)
{
    open_cache("", "");
    ask("a.txt");
    ask("a.txt");
    assert_string_equal(run("clear"), "{evicted:1}\n");
    assert_string_equal(run("clear"), "{evicted:0}\n");
    assert_non_null(strstr(run(""), ",body_entries:0,body_evicted:1,body_bytes:0,"));
    clear_calls();
    assert_string_equal(ask_body("a.txt"), "first");
    assert_int_equal(disk.opens, 1);
    close_cache();
}

static void expect_refusal(const char *args, const char *sentence)
{
    mk_test_call_init(&call, site.worker, args);
    assert_int_equal(cache_commands[0].run(&call.base), -EINVAL);
    if (!strstr(call.error, sentence))
        fail_msg("%s: %s", args, call.error);
}

TEST(refusals)
{
    open_cache("", "");
    expect_refusal("none", "behind cache is expected");
    expect_refusal("stats x", "no arguments");
    expect_refusal("clear h", "cache reset HOST PATH");
    expect_refusal("entries other", "there is no host other");
    expect_refusal("entries h /a b", "takes a host");
    expect_refusal("reset", "cache reset takes");
    expect_refusal("reset h path", "is not a path");
    expect_refusal("reset other /a", "there is no host other");
    expect_refusal("add h", "cache add takes");
    expect_refusal("add h path", "is not a path");
    expect_refusal("add other /a", "there is no host other");
    close_cache();
}

TEST(completion)
{
    open_cache("", "");
    mk_test_call_init(&call, site.worker, "");
    cache_commands[0].complete(&call.base);
    assert_string_equal(mk_test_call_take(&call), "stats entries reset add clear ");
    mk_test_call_init(&call, site.worker, "reset");
    cache_commands[0].complete(&call.base);
    assert_string_equal(mk_test_call_take(&call), "h ");
    close_cache();
}

TEST_FILE(make_cache_folder_with_file, mk_test_folder_remove)
