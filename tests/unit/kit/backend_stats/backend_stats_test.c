// SPDX-License-Identifier: Apache-2.0
/* Counters of backends and of the servers of groups: what is shown, and what is hidden when no section names it. */
#include "testing.h"

#include "counters_memory.h"

#include <monkey/kit/backend_stats.h>

#include <stdio.h>

static const struct mk_counter_info infos[] = MK_BACKEND_STATS_INFOS("proxy");
static const char *const *servers; /* of the group; ends with an empty one */
static struct mk_stats_registry all;
static char shown[4096];

static struct mk_str get_server_name(const struct mk_upstream_group *group, unsigned n)
{
    (void)group;
    return mk_str_c(servers[n]);
}

static const struct mk_upstreams upstreams = {.server_name = get_server_name};
static const struct mk_upstream_group *const group = (const struct mk_upstream_group *)&upstreams; /* not read */

static int open_all(void **state)
{
    mk_test_counters_open(state);
    mk_stats_registry_init(&all, infos);
    return 0;
}

static int close_all(void **state)
{
    mk_stats_registry_release(&all);
    return mk_test_counters_close(state);
}

static int open_backend(struct mk_target_stats *b, const char *text, size_t path, const char *const *lines)
{
    struct mk_target target = {.text = mk_str_c(text)};
    target.path = path ? mk_str(text + path, target.text.len - path) : MK_STR_NONE;
    servers = lines;
    return mk_target_stats_open(b, &all, &target, &upstreams, lines ? group : NULL);
}

static int add_shown(const struct mk_counter_value *v, void *ctx)
{
    (void)ctx;
    if (!mk_str_eq(v->name, MK_STR("backend_requests")))
        return 0;
    size_t len = strlen(shown);
    snprintf(shown + len, sizeof(shown) - len, "%.*s %lld\n", MK_STR_ARG(v->labels), (long long)v->value);
    return 0;
}

/* Returns the requests of all backends that are shown. */
static const char *show(void)
{
    shown[0] = '\0';
    mk_counters_each(add_shown, NULL);
    return shown;
}

TEST(a_backend_without_its_path, open_all, close_all)
{
    struct mk_target_stats b;
    assert_int_equal(open_backend(&b, "http://a:80/path", 11, NULL), 0);
    mk_backend_stats_add(b.backend, MK_BACKEND_REQUESTS, NULL, 3);
    assert_ptr_equal(mk_target_stats_find(&b, MK_STR("c")), b.backend);
    assert_string_equal(show(), "backend=\"http://a:80\" 3\n");
    mk_target_stats_close(&b, &all);
}

/* A plugin may set one that is not in the text. */
TEST(a_backend_with_another_path, open_all, close_all)
{
    const struct mk_target target = {.text = MK_STR("http://a:80"), .path = MK_STR("/")};
    struct mk_target_stats b;
    assert_int_equal(mk_target_stats_open(&b, &all, &target, NULL, NULL), 0);
    assert_string_equal(show(), "backend=\"http://a:80\" 0\n");
    mk_target_stats_close(&b, &all);
    assert_int_equal(open_backend(&b, "unix:/auth.sock /verify", 16, NULL), 0);
    assert_true(mk_str_eq(b.backend->backend, MK_STR("unix:/auth.sock")));
    mk_target_stats_close(&b, &all);
}

TEST(a_status_counts_in_its_class, open_all, close_all)
{
    static const unsigned statuses[] = {100, 200, 204, 301, 404, 500, 599, 600, 999};
    static const int64_t counts[] = {1, 2, 1, 1, 4};
    struct mk_target_stats b;
    assert_int_equal(open_backend(&b, "http://a", 0, NULL), 0);
    for (size_t i = 0; i < MK_COUNT_OF(statuses); i++)
        mk_backend_stats_add_status(b.backend, NULL, statuses[i]);
    for (unsigned i = 0; i < MK_COUNT_OF(counts); i++)
        assert_int_equal(mk_counter_read(b.backend->counters[MK_BACKEND_RESPONSES + i]), counts[i]);
    mk_target_stats_close(&b, &all);
}

TEST(servers_have_their_own, open_all, close_all)
{
    static const char *const lines[] = {"a:1", "b:1", ""};
    struct mk_target_stats b;
    assert_int_equal(open_backend(&b, "http://app", 0, lines), 0);
    mk_backend_stats_add(mk_target_stats_find(&b, MK_STR("b:1")), MK_BACKEND_REQUESTS, NULL, 2);
    assert_ptr_equal(mk_target_stats_find(&b, MK_STR("c:1")), b.backend);
    assert_string_equal(show(), "backend=\"http://app\" 0\n"
                                "backend=\"http://app\",server=\"a:1\" 0\n"
                                "backend=\"http://app\",server=\"b:1\" 2\n");
    mk_target_stats_close(&b, &all);
}

/* What no section names any more is hidden, and counts on when it is named again. */
TEST(hidden_when_no_section_names_it, open_all, close_all)
{
    static const char *const two[] = {"a:1", "b:1", ""}, *const one[] = {"b:1", ""};
    struct mk_target_stats old, new;
    assert_int_equal(open_backend(&old, "http://app", 0, two), 0);
    mk_backend_stats_add(mk_target_stats_find(&old, MK_STR("a:1")), MK_BACKEND_REQUESTS, NULL, 5);
    assert_int_equal(open_backend(&new, "http://app", 0, one), 0);
    mk_target_stats_close(&old, &all);
    assert_string_equal(show(), "backend=\"http://app\" 0\nbackend=\"http://app\",server=\"b:1\" 0\n");
    assert_int_equal(open_backend(&old, "http://app", 0, two), 0);
    assert_non_null(strstr(show(), "server=\"a:1\" 5\n"));
    mk_target_stats_close(&old, &all);
    mk_target_stats_close(&new, &all);
    assert_string_equal(show(), "");
}
