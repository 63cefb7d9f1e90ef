// SPDX-License-Identifier: Apache-2.0
/* The counters of a service: their names, the bound of its routes, and a new version that counts on. */
#include "counters_memory.h"
#include "service_slots.h"

#include <errno.h>
#include <stdio.h>

#include "duda/core/route/router.h"
#include "duda/core/service/counts.h"

enum { ROUTES = 100 };

static struct mk_arena arena;
static struct service service;
static struct mk_test_slots slots;
static char sentence[128];
static struct mk_buf error;

static struct service *open_service(unsigned routes)
{
    const char *problem;
    mk_arena_init(&service.arena, NULL, 4 << 20, NULL, 0);
    mk_arena_init(&arena, NULL, 4 << 20, NULL, 0);
    service.host = MK_STR("example.org");
    service.conf.name = MK_STR("shop");
    mk_test_slots_open(&slots, &service, NULL);
    mk_buf_init_fixed(&error, sentence, sizeof(sentence));
    for (unsigned i = 0; i < routes; i++) {
        char pattern[32];
        int n = snprintf(pattern, sizeof(pattern), "/route%u", i);
        struct duda_route *r = mk_arena_zalloc(&arena, sizeof(*r));
        assert_non_null(r);
        assert_int_equal(mk_routes_add(&router_of(&service)->routes, &arena, 1 << MK_GET, mk_str(pattern, (size_t)n),
                                       &r->at, &problem),
                         0);
    }
    return &service;
}

static void close_service(void)
{
    counts_close(&service);
    mk_arena_release(&arena);
    mk_arena_release(&service.arena);
    mk_test_slots_close(&slots);
    memset(&service, 0, sizeof(service));
}

static struct mk_str find_row(const struct duda_route *route)
{
    return counts_find(&service, route)->pattern;
}

TEST(rows, mk_test_counters_open, mk_test_counters_close)
{
    static const unsigned numbers[] = {0, 1, 63, 64, 65, ROUTES};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        unsigned n = 0;
        struct service *s = open_service(numbers[i]);
        assert_int_equal(counts_make(s, &error), 0);
        counts_open(s);
        for (const struct mk_route *r = router_of(s)->routes.first; r; r = r->next, n++)
            assert_true(mk_str_eq(find_row(routes_get_owner(r)), n < COUNTS_ROUTES_MAX ? r->pattern : MK_STR("other")));
        assert_int_equal(n, numbers[i]);
        assert_str_equal(find_row(NULL), "none");
        assert_int_equal(counts_of(s)->n, n <= COUNTS_ROUTES_MAX ? n + 1 : COUNTS_ROWS_MAX);
        close_service();
    }
}

static int count_series(const struct mk_counter_value *value, void *ctx)
{
    unsigned *n = ctx;
    *n += mk_str_eq(value->plugin, MK_STR("duda"));
    return 0;
}

/* Another version of the service has the same counters, and adds none. */
TEST(the_next_version_counts_on, mk_test_counters_open, mk_test_counters_close)
{
    const struct mk_counter *before = NULL;
    unsigned first = 0;
    for (unsigned version = 0; version < 3; version++) {
        unsigned n = 0;
        struct service *s = open_service(ROUTES);
        assert_int_equal(counts_make(s, &error), 0);
        counts_open(s);
        const struct mk_counter *now = counts_find(s, routes_get_owner(router_of(s)->routes.first))->classes[1];
        mk_counter_add(now, NULL, 1);
        assert_int_equal(mk_counter_read(now), version + 1);
        assert_true(!before || before == now);
        assert_int_equal(mk_counters_each(count_series, &n), 0);
        assert_true(version == 0 || n == first);
        first = n;
        before = now;
        close_service();
    }
}

/* Returns how many counters of services are shown. */
static unsigned count_shown(void)
{
    unsigned n = 0;
    mk_counters_each(count_series, &n);
    return n;
}

TEST(what_is_gone_is_hidden, mk_test_counters_open, mk_test_counters_close)
{
    enum { EACH = COUNTS_CLASSES + COUNTS_FAILURES + 1, OWN = 3, TASKS = 4 };
    for (unsigned routes = 1; routes < 3; routes++) {
        struct task_counts tasks;
        struct service *s = open_service(routes); /* and the row "none" */
        assert_int_equal(counts_make(s, &error), 0);
        assert_int_equal(count_shown(), 0);
        counts_open(s);
        assert_int_equal(count_shown(), OWN + (routes + 1) * EACH);
        counts_open_tasks(s, &tasks);
        counts_open_package(s, "dice", "dice_rolls", "rolls", false);
        assert_int_equal(count_shown(), OWN + (routes + 1) * EACH + TASKS + 1);
        counts_close_tasks(&tasks);
        assert_int_equal(count_shown(), OWN + (routes + 1) * EACH + 1);
        close_service();
        assert_int_equal(count_shown(), 0);
    }
}

/* A service that has not served: its packages have counters all the same. */
TEST(what_was_never_open, mk_test_counters_open, mk_test_counters_close)
{
    struct service *s = open_service(1);
    assert_int_equal(counts_make(s, &error), 0);
    counts_open_package(s, "dice", "dice_rolls", "rolls", false);
    assert_int_equal(count_shown(), 1);
    close_service();
    assert_int_equal(count_shown(), 0);
}

static int check_labels(const struct mk_counter_value *value, void *ctx)
{
    bool *found = ctx;
    *found |= mk_str_eq(value->name, MK_STR("requests")) &&
              mk_str_eq(value->labels, MK_STR("host=\"example.org\",service=\"shop\",method=\"GET\",route=\"/route0\","
                                              "status=\"2xx\""));
    return 0;
}

TEST(names, mk_test_counters_open, mk_test_counters_close)
{
    bool found = false;
    struct service *s = open_service(1);
    assert_int_equal(counts_make(s, &error), 0);
    counts_open(s);
    mk_counters_each(check_labels, &found);
    assert_true(found);
    close_service();
}

TEST(packages, mk_test_counters_open, mk_test_counters_close)
{
    struct service *s = open_service(0);
    const struct mk_counter *a = counts_open_package(s, "dice", "dice_rolls", "rolls", false);
    const struct mk_counter *b = counts_open_package(s, "dice", "dice_open", "open dice", true);
    assert_string_equal(counts_of(s)->packages->name, "dice_rolls");
    assert_ptr_equal(counts_of(s)->packages->counter, a);
    assert_ptr_equal(counts_of(s)->packages->next->counter, b);
    assert_null(counts_of(s)->packages->next->next);
    close_service();
}

TEST(without_memory, mk_test_counters_open, mk_test_counters_close)
{
    int err = -ENOMEM;
    for (long n = 0; err < 0; n++) {
        assert_true(n < 20);
        struct service *s = open_service(ROUTES);
        mk__alloc_countdown = n;
        err = counts_make(s, &error);
        bool failed = mk__alloc_countdown < 0;
        mk__alloc_countdown = -1;
        assert_int_equal(err, failed ? -ENOMEM : 0);
        assert_true(n > 0 || err < 0);
        close_service();
    }
}
