// SPDX-License-Identifier: Apache-2.0
/* The routes of a service: groups, what a path leads to, and the listing. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>

#include "service_slots.h"

#include "duda/core/common/current.h"
#include "duda/core/compat/map.h"
#include "duda/core/objects.h"
#include "duda/core/route/router.h"

static const struct duda_api_router *const router = &object_router;

static struct service service;
static struct mk_test_slots slots;
static char error_text[256];
static struct mk_buf error;

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    mk_test_slots_open(&slots, &service, NULL);
    mk_arena_init(&service.arena, NULL, 1 << 20, NULL, 0);
    service.self.name = (struct duda_string){(char *)(uintptr_t) "test", 4};
    mk_buf_init_fixed(&error, error_text, sizeof(error_text));
    current = (struct current){.service = &service}; /* duda_main() */
    router_init(&service);
    return map_init(&service);
}

static int end(void **state)
{
    (void)state;
    current = (struct current){0};
    mk_arena_release(&service.arena);
    mk_test_slots_close(&slots);
    return 0;
}

static void handle(duda_request_t *dr)
{
    (void)dr;
}

static int check_first(duda_request_t *dr)
{
    (void)dr;
    return 0;
}

static int check_second(duda_request_t *dr)
{
    (void)dr;
    return 0;
}

static int check_third(duda_request_t *dr)
{
    (void)dr;
    return 0;
}

static struct duda_route *inner, *inner_route;

static void add_inner(void)
{
    inner_route = router->get("/:id", handle);
    router->before(inner_route, check_third);
    router->limit(inner_route, 10);
}

static void add_outer(void)
{
    router->get("", handle);
    inner = router->group("/orders", add_inner);
    router->before(inner, check_second);
    router->timeout(inner, 5);
    router->in_dthread(inner);
}

/* A route has what its groups have, unless it has its own; callbacks of the outer group come first. */
TEST(groups, begin, end)
{
    struct mk_route_match match;
    struct duda_route *outer = router->group("/shop", add_outer);
    router->before(outer, check_first);
    router->limit(outer, 1000);
    router->timeout(outer, 60);
    assert_null(router_of(&service)->group);
    assert_int_equal(router_complete(&service, &error), 0);
    assert_str_equal(inner_route->at.pattern, "/shop/orders/:id");
    assert_int_equal(inner_route->body_bytes_max, 10);
    assert_int_equal(inner_route->timeout_ms, 5);
    assert_true(inner_route->in_dthread && !inner_route->stream_body);
    assert_ptr_equal(inner_route->before->before, check_first);
    assert_ptr_equal(inner_route->before->next->before, check_second);
    assert_ptr_equal(inner_route->before->next->next->before, check_third);
    assert_null(inner_route->before->next->next->next);
    assert_int_equal(router_match(&service, MK_GET, MK_STR("/shop"), false, &match), ROUTER_FOUND);
    assert_int_equal(routes_get_owner(match.route)->timeout_ms, 60);
    assert_false(routes_get_owner(match.route)->in_dthread);
}

TEST(what_a_path_leads_to, begin, end)
{
    static const struct {
        enum mk_method method;
        const char *path;
        enum router_result result;
    } rows[] = {
        {MK_GET, "/a", ROUTER_FOUND},        {MK_HEAD, "/a", ROUTER_FOUND},    {MK_POST, "/a", ROUTER_METHOD},
        {MK_GET, "/b/", ROUTER_FOUND},       {MK_GET, "/b", ROUTER_SLASH},     {MK_POST, "/any", ROUTER_FOUND},
        {MK_GET, "/none", ROUTER_NOT_FOUND}, {MK_GET, "/old/x", ROUTER_FOUND}, {MK_PUT, "/old/x", ROUTER_FOUND},
    };
    struct mk_route_match match;
    router->get("/a", handle);
    router->get("/b/", handle);
    router->any("/any", handle);
    assert_int_equal(map_add_static(map_of(&service), &service.arena, MK_STR("/old"), handle), 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum router_result result = router_match(&service, rows[i].method, mk_str_c(rows[i].path), false, &match);
        if (result != rows[i].result)
            fail_msg("%s: %d is not %d", rows[i].path, (int)result, (int)rows[i].result);
    }
}

static void list_route(struct duda_route *route, struct mk_str methods, struct mk_str pattern, void *ctx)
{
    assert_non_null(route);
    mk_buf_addf(ctx, "%.*s %.*s;", MK_STR_ARG(methods), MK_STR_ARG(pattern));
}

TEST(the_listing_is_in_the_order_of_registration, begin, end)
{
    MK_BUF_ON_STACK(list, 256);
    map_add_static(map_of(&service), &service.arena, MK_STR("/old"), handle);
    router->post("/b", handle);
    router->add("GET, PUT", "/a/:id", handle);
    router->any("/c", handle);
    router_list(&service, list_route, &list);
    assert_str_equal(mk_buf_str(&list), "POST /b;GET, PUT /a/:id;ANY /c;ANY /old;");
}

TEST(mistakes_add_nothing, begin, end)
{
    assert_null(router->get(NULL, handle));
    assert_null(router->get("/a", NULL));
    assert_null(router->add("FETCH", "/a", handle));
    assert_null(router->group("/g", NULL));
    assert_int_equal(router->before(NULL, check_first), -EINVAL);
    assert_int_equal(router->before(router->get("/a", handle), NULL), -EINVAL);
    service.state = SERVICE_RUNS;
    assert_null(router->get("/b", handle));
    assert_int_equal(router->before_all(check_first), -EPERM);
    assert_null(router_of(&service)->before);
}

TEST(without_memory, begin, end)
{
    mk__alloc_countdown = 0;
    assert_null(router->get("/a", handle));
    mk__alloc_countdown = -1;
    assert_null(router_of(&service)->routes.first);
}
