# SPDX-License-Identifier: Apache-2.0
"""Groups of routes: what the routes of a group have of it."""

import pytest

from harness.services import HEAD, needs_duda

pytestmark = needs_duda

GROUPS = (
    HEAD
    + """
#define HOOK(fn) \\
    static int fn(duda_request_t *dr) \\
    { \\
        response->header(dr, "Via", #fn); \\
        return 0; \\
    } \\
    static void after_##fn(duda_request_t *dr) { response->header(dr, "Link", #fn); }
HOOK(all) HOOK(outer) HOOK(inner) HOOK(second) HOOK(own)

static void tell(duda_request_t *dr)
{
    response->printf(dr, "%s", router->pattern(dr));
    if (param->get(dr, "id"))
        response->printf(dr, " %s", param->get(dr, "id"));
    if (dthread->running())
        response->printf(dr, " %d", dthread->sleep(1));
    response->end(dr, NULL);
}

static void wait_long(duda_request_t *dr) { (void)dr; }

static int deny(duda_request_t *dr)
{
    response->error(dr, 403);
    return 1;
}

static void add_inner(void)
{
    router->before(router->get("/deep", tell), own);
    router->after(router->post("/deep", tell), after_own);
    router->get("", tell);
}

static void add_outer(void)
{
    router->get("/a", tell);
    router->limit(router->post("/more", tell), 20);
    router->post("/b", tell);
    router->get("/late", wait_long);
    struct duda_route *in = router->group("/in/:id", add_inner);
    router->before(in, inner);
    router->before(in, second);
    router->after(in, after_inner);
    router->after(in, after_second);
    router->limit(in, 5);
    router->in_dthread(in);
    CHECK(!router->get("c", tell) && !router->group("c", add_inner) && !router->get("/a", tell));
}

static void add_denied(void) { router->get("/denied", tell); }
static void add_never(void) { router->get("/never", tell); }

int duda_main(void)
{
    const char *volatile none = NULL;
    router->before_all(all);
    router->after_all(after_all);
    router->get("/plain", tell);
    struct duda_route *group = router->group("/out", add_outer);
    router->before(group, outer);
    router->after(group, after_outer);
    router->limit(group, 10);
    router->timeout(group, 50);
    router->before(router->group("", add_denied), deny);
    CHECK(!router->group(none, add_never) && !router->group("/never", NULL));
    router->get("/last", tell);
    return 0;
}
"""
).replace("#include <duda/duda.h>", "#include <duda/duda.h>\n#define CHECK(x) ((x) ? (void)0 : abort())")


def names(answer, field):
    return [value for name, value in answer.fields if name.lower() == field]


@pytest.fixture
def server(serve_services):
    return serve_services({"t": GROUPS}, {"Workers": 1}, host={"HandlerTimeout": "1h"})


IN_GROUP = ["all", "outer"]
IN_INNER = [*IN_GROUP, "inner", "second"]


@pytest.mark.parametrize(
    ("path", "body", "before", "after"),
    [
        ("plain", "/plain", ["all"], ["all"]),
        ("last", "/last", ["all"], ["all"]),
        ("out/a", "/out/a", IN_GROUP, IN_GROUP),
        ("out/in/7", "/out/in/:id 7 0", IN_INNER, IN_INNER),
        ("out/in/7/deep", "/out/in/:id/deep 7 0", [*IN_INNER, "own"], IN_INNER),
    ],
)
def test_routes_have_what_their_groups_have(server, path, body, before, after):
    with server.connect() as client:
        answer = client.ask(f"/t/{path}")
    assert (answer.status, answer.body.decode()) == (200, body)
    assert (names(answer, "via"), names(answer, "link")) == (before, after)


def test_limits(server):
    """Those of a route itself come before those of its group, and those of an inner group before the outer one's."""
    for path, most in ("b", 10), ("more", 20), ("in/7/deep", 5):
        for length, status in (most, 200), (most + 1, 413):
            with server.connect() as client:
                assert client.ask(f"/t/out/{path}", method="POST", body=b"x" * length).status == status, (path, length)


def test_the_timeout_of_a_group(server):
    with server.connect() as client:
        assert client.ask("/t/out/late").status == 503


def test_a_group_without_a_prefix(server):
    with server.connect() as client:
        assert client.ask("/t/denied").status == 403
        assert client.ask("/t/never").status == 404


def test_what_a_group_refuses(server):
    server.wait_log(r'service t: router->get\("c"\) adds no route: in a group it is empty or begins with a slash')
    server.wait_log(r'service t: router->group\("c"\) adds no route: in a group it is empty or begins with a slash')
    server.wait_log(r'service t: router->get\("/out/a"\) adds no route: there is a route for its method and pattern')
    server.wait_log(r'service t: router->group\("/never"\) adds no route: there is no prefix or no function')
