# SPDX-License-Identifier: Apache-2.0
"""Routes of web services: which function gets a request, and what it can read of its path, query, form and cookies."""

import pytest

from harness.services import HEAD, needs_duda

pytestmark = needs_duda

# handlers that say which one was called, and with what
TELL = (
    HEAD
    + """
#define TELL(fn) \\
    static void fn(duda_request_t *dr) \\
    { \\
        response->printf(dr, #fn); \\
        for (int i = 0; i < param->count(dr); i++) \\
            response->printf(dr, " %s=%s", param->name(dr, i), param->get_id(dr, i)); \\
        response->end(dr, NULL); \\
    }

"""
)

ROUTES = (
    TELL
    + """
TELL(front) TELL(list) TELL(make) TELL(me) TELL(user) TELL(drop) TELL(files) TELL(whole) TELL(folder) TELL(put_folder)
TELL(any) TELL(any_get) TELL(several)

static void pattern(duda_request_t *dr)
{
    response->printf(dr, "%s", router->pattern(dr));
    response->end(dr, NULL);
}

int duda_main(void)
{
    router->get("/files/" "*path", files);
    router->get("/users/:id", user);
    router->delete("/users/:id", drop);
    router->get("/users/me", me);
    router->get("/users", list);
    router->post("/users", make);
    router->get("/", front);
    router->get("/folder/", folder);
    router->put("/folder/", put_folder);
    router->any("/any", any);
    router->get("/any", any_get);
    router->add("PATCH, PUT", "/several", several);
    router->get("/pattern/:a/:b", pattern);
    router->get("/whole", whole);
    return 0;
}
"""
)


@pytest.fixture
def ask(serve_services):
    """Starts the service `svc` from a source, and asks it."""

    def start(source, **rest):
        server = serve_services({"svc": source}, **rest)
        client = server.connect()

        def one(target, *fields, **more):
            return client.ask("/svc" + target, *fields, **more)

        one.server = server
        return one

    return start


def tell(response):
    return response.status, response.body.decode()


# method, target, what the handler says
FOUND = [
    ("GET", "/", "front"),
    ("GET", "/?x=1", "front"),
    ("GET", "/users", "list"),
    ("POST", "/users", "make"),
    ("GET", "/users/me", "me"),
    ("DELETE", "/users/me", "drop id=me"),
    ("GET", "/users/7", "user id=7"),
    ("GET", "/users/a%20b+c", "user id=a b+c"),
    ("GET", "/files/", "files path="),
    ("GET", "/files/a/b%20c/", "files path=a/b c/"),
    ("GET", "/any", "any_get"),
    ("LOCK", "/any", "any"),
    ("PATCH", "/any", "any"),
    ("PUT", "/several", "several"),
    ("PATCH", "/several", "several"),
    ("GET", "/pattern/1/2", "/pattern/:a/:b"),
]


@pytest.fixture
def routes(ask):
    return ask(ROUTES)


def test_a_route_gets_its_requests(routes):
    for method, target, told in FOUND:
        assert tell(routes(target, method=method)) == (200, told), (method, target)


def test_paths_and_methods_without_a_route(routes):
    for target in ["/nothing", "/users/7/more", "/users/", "/users/%2e", "/pattern/1", "/users/me/"]:
        assert routes(target).status == 404, target
    for method, target, allow in [
        ("PUT", "/users", "GET, HEAD, POST, OPTIONS"),
        ("POST", "/users/me", "GET, HEAD, DELETE, OPTIONS"),
        ("GET", "/several", "PUT, PATCH, OPTIONS"),
    ]:
        answer = routes(target, method=method)
        assert (answer.status, answer["Allow"]) == (405, allow)
        answer = routes(target, method="OPTIONS")
        assert (answer.status, answer["Allow"], answer.body) == (204, allow, b"")
    assert routes("/users", method="LOCK").status == 501


def test_head_is_answered_by_the_route_for_get(routes):
    answer = routes("/users/7", method="HEAD")
    assert (answer.status, answer["Content-Length"], answer.body) == (200, "9", b"")


def test_a_folder_without_its_slash_is_redirected(routes):
    answer = routes("/folder?a=%20b")
    assert (answer.status, answer["Location"]) == (301, "/svc/folder/?a=%20b")
    answer = routes("/folder", method="PUT")
    assert (answer.status, answer["Location"]) == (308, "/svc/folder/")
    answer = routes("")
    assert (answer.status, answer["Location"]) == (301, "/svc/")
    assert routes("/files")["Location"] == "/svc/files/"
    assert routes("/whole/").status == 404
