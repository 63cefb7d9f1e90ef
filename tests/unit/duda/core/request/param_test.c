// SPDX-License-Identifier: Apache-2.0
/* What a service reads of the wildcards of its pattern, by the objects of all levels. */
#include "testing.h"

#include <errno.h>

#include "harness.h"
#include "service_slots.h"

#include "duda/core/common/current.h"
#include "duda/core/objects.h"
#include "duda/core/request/request.h"
#include "duda/core/route/dispatch.h"

static const struct duda_api_param *const param = &object_param;
static const struct duda_api_param_1 *const old = &object_param_1;

static struct service service;
static struct service_worker worker;
static struct mk_test_slots slots;
static struct mk_test_fixture fixture;
static struct duda_route route;
static struct mk_str values[3];
static struct dispatch dispatch;
static struct duda_request request;
static struct mk_arena arena;

/* The pattern has matched "/shop/-42/" and "x" with a NUL after each. */
static int begin(void **state)
{
    static char exchange; /* it is only compared with NULL */
    struct mk_routes routes = {0};
    const char *problem;
    (void)state;
    memset(&service, 0, sizeof(service));
    memset(&route, 0, sizeof(route));
    assert_int_equal(mk_test_fixture_open(&fixture, NULL), 0);
    worker = (struct service_worker){.loop = &fixture.loop};
    mk_test_slots_open(&slots, &service, &worker);
    service.self.name = (struct duda_string){(char *)(uintptr_t) "test", 4};
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    assert_int_equal(mk_routes_add(&routes, &arena, MK_ROUTES_ANY, MK_STR("/:name/:number/:empty"), &route.at,
                                   &problem),
                     0);
    values[0] = MK_STR("shop");
    values[1] = MK_STR("-42");
    values[2] = MK_STR("");
    dispatch = (struct dispatch){.dr = &request, .route = &route, .n = 3, .values = values};
    request =
        (struct duda_request){.req = (struct mk_request *)(void *)&exchange, .worker = &worker, .dispatch = &dispatch};
    current = (struct current){.service = &service, .worker = &worker};
    return 0;
}

static int end(void **state)
{
    (void)state;
    current = (struct current){0};
    mk_arena_release(&arena);
    mk_test_slots_close(&slots);
    mk_test_fixture_close(&fixture);
    return 0;
}

TEST(by_name, begin, end)
{
    long number = 7;
    assert_string_equal(param->get(&request, "name"), "shop");
    assert_string_equal(param->get(&request, "empty"), "");
    assert_null(param->get(&request, "Name"));
    assert_null(param->get(&request, ""));
    assert_int_equal(param->len(&request, "name"), 4);
    assert_int_equal(param->len(&request, "empty"), 0);
    assert_int_equal(param->len(&request, "other"), -ENOENT);
    assert_int_equal(param->get_number(&request, "number", &number), 0);
    assert_int_equal(number, -42);
    assert_int_equal(param->get_number(&request, "name", &number), -EINVAL);
    assert_int_equal(param->get_number(&request, "empty", &number), -EINVAL);
    assert_int_equal(param->get_number(&request, "other", &number), -ENOENT);
    assert_int_equal(param->get_number(&request, "number", NULL), -EINVAL);
    assert_int_equal(number, -42);
}

TEST(by_number, begin, end)
{
    assert_int_equal(param->count(&request), 3);
    assert_string_equal(param->get_id(&request, 0), "shop");
    assert_string_equal(param->name(&request, 2), "empty");
    assert_null(param->get_id(&request, 3));
    assert_null(param->get_id(&request, -1));
    assert_null(param->name(&request, 3));
}

/* Level 1 gives copies, which the service frees. */
TEST(the_original_api, begin, end)
{
    long number = 7;
    char *copy = old->get(&request, 1);
    assert_string_equal(copy, "-42");
    assert_ptr_not_equal(copy, values[1].p);
    object_mem.free(copy);
    assert_null(old->get(&request, 3));
    assert_int_equal(old->count(&request), 3);
    assert_int_equal(old->len(&request, 0), 4);
    assert_int_equal(old->len(&request, 3), -1);
    assert_int_equal(old->get_number(&request, 1, &number), 0);
    assert_int_equal(number, -42);
    assert_int_equal(old->get_number(&request, 0, &number), -1);
    assert_string_equal(object_param_2.get(&request, "name"), "shop");
    assert_int_equal(object_param_2.get_number(&request, "name", &number), -1);
}

/* A request that has ended, or is of another worker, has no values. */
TEST(another_request, begin, end)
{
    struct service_worker other = {0};
    request.worker = &other;
    assert_null(param->get(&request, "name"));
    assert_int_equal(param->count(&request), 0);
    request.worker = &worker;
    request.req = NULL;
    assert_null(param->get_id(&request, 0));
    assert_int_equal(param->len(&request, "name"), -ENOENT);
    assert_null(param->get(NULL, "name"));
}
