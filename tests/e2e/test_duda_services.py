# SPDX-License-Identifier: Apache-2.0
"""The life of web services: their sections, start, reload, errors and end."""

from harness.services import HEAD, needs_duda

pytestmark = needs_duda

HELLO = (
    HEAD
    + """
static void say_hello(duda_request_t *dr)
{
    response->printf(dr, "hello\\n");
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", say_hello) ? 0 : -1;
}
"""
)


def test_a_service_answers(serve_services):
    server = serve_services({"hello": HELLO})
    assert server.connect().ask("/hello/").body == b"hello\n"
    assert server.connect().ask("/hello.txt").status == 200  # a file of the host
