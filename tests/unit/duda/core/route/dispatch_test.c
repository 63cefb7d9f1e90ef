// SPDX-License-Identifier: Apache-2.0
/* The way of a request to its handler, when the n-th allocation fails. */
#include "duda/core/request/request.h"
#include "duda/core/route/dispatch.h"
#include "duda/core/service/counts.h"

#include "server/worker/worker.h"

#include "http/h1_fixture.h"
#include "service_slots.h"

#include <errno.h>

extern const struct mk_plugin mk_plugin_duda;

enum { ALLOCATIONS_MAX = 20 };

static struct service_set set = {.plugin = &mk_plugin_duda};
static struct mk_arena arena;
static struct service service;
static struct service_worker service_worker;
static struct mk_test_slots slots;
static unsigned handled, hooked;

static void handle(duda_request_t *dr)
{
    handled++;
    assert_true(mk_str_eq(dr->dispatch->values[0], MK_STR("7")));
    mk_response_end(dr->req);
}

/* As a function of router->after() that asks for the route and its parameters. */
static void add_header(duda_request_t *dr)
{
    hooked++;
    assert_non_null(dr->dispatch);
    assert_true(dr->dispatch->n == 0 || mk_str_eq(dr->dispatch->values[0], MK_STR("7")));
}

static void open_service(void)
{
    static const struct duda_service_info info = {.level = DUDA_API_LEVEL};
    static struct route_hook after = {.after = add_header};
    const char *problem;
    mk_arena_init(&arena, NULL, 64 * 1024, NULL, 0);
    service = (struct service){.set = &set, .info = &info};
    service_worker = (struct service_worker){0};
    mk_test_slots_open(&slots, &service, &service_worker);
    mk_list_init(&service_worker.requests);
    request_pool_init(&service_worker);
    struct duda_route *r = mk_arena_zalloc(&arena, sizeof(*r));
    assert_non_null(r);
    assert_int_equal(mk_routes_add(&router_of(&service)->routes, &arena, 1 << MK_GET, MK_STR("/:id"), &r->at, &problem),
                     0);
    r->handler = handle;
    r->timeout_ms = 1000;
    mk_arena_init(&service.arena, NULL, 64 * 1024, NULL, 0);
    assert_int_equal(counts_make(&service, NULL), 0);
    counts_open(&service);
    router_of(&service)->after = &after;
    handled = hooked = 0;
}

static void close_service(void)
{
    request_pool_release(&service_worker);
    counts_close(&service);
    mk_arena_release(&arena);
    mk_arena_release(&service.arena);
    mk_test_slots_close(&slots);
}

/* Takes all memory of the exchange that needs no allocation, except for `left` bytes. */
static void leave_memory(struct mk_arena *a, size_t left)
{
    assert_non_null(mk_arena_alloc(a, 4096));
    while ((size_t)(a->end - a->at) < left)
        assert_non_null(mk_arena_alloc(a, 4096));
    while ((size_t)(a->end - a->at) > left)
        assert_non_null(mk_arena_alloc(a, 1));
}

struct plan {
    size_t left;
    long fails_at; /* the allocation; -1: none has failed */
};

/* What the server does with a request of the service, up to the head of its response. */
static void dispatch(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_generation g = {.plugins = {&mk_plugin_duda}, .n_plugins = 1};
    mk__cell *no_cells = NULL;
    struct mk_worker worker = {.generation = &g, .cells = &no_cells};
    void *own = req->worker;
    struct plan *plan = fixture->ctx;
    req->worker = &worker;
    leave_memory(mk_request_arena(req), plan->left);
    mk__alloc_countdown = plan->fails_at;
    int err = dispatch_request(req, &service_worker, mk_request_path(req));
    bool failed = mk__alloc_countdown < 0;
    mk__alloc_countdown = -1;
    assert_true(err == 0 || err == -ENOMEM);
    if (err < 0)
        mk_response_error(req, 500);
    assert_int_equal(req->response_state, MK__RESPONSE_ENDED);
    mk_plugin_duda.on_response(req);
    mk_plugin_duda.on_done(req);
    assert_true(mk_list_empty(&service_worker.requests));
    req->plugin_states = NULL;
    req->worker = own;
    plan->fails_at = failed ? plan->fails_at : -1;
}

/* Returns whether an allocation has failed. */
static bool dispatch_with(struct plan plan)
{
    open_service();
    open_fixture(dispatch);
    w.ctx = &plan;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET /7 HTTP/1.1\r\nHost: h\r\n\r\n"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(handled, plan.fails_at < 0);
    close_fixture();
    close_service();
    return plan.fails_at >= 0;
}

TEST(each_allocation_fails)
{
    for (size_t left = 0; left <= 512; left += 16) {
        long n = 0;
        while (dispatch_with((struct plan){left, n}))
            assert_true(++n < ALLOCATIONS_MAX);
        assert_true(n >= 1); /* the struct of the request is not in the arena */
        assert_int_equal(hooked, 1);
    }
}
