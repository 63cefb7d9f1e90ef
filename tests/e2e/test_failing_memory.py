# SPDX-License-Identifier: Apache-2.0
"""The n-th allocation of a request for a file fails: no other connection gets what was to be sent, or less."""

import pytest

from harness import build
from harness.content import HELLO, LARGE
from harness.failing_memory import fail_each, only_sanitized

pytestmark = [pytest.mark.single_protocol, only_sanitized]
H2 = pytest.param("h2", marks=pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2"))
CONTENT = {"/hello.txt": HELLO, "/large.bin": LARGE}


@pytest.mark.parametrize("protocol", ["h1", H2])
@pytest.mark.parametrize("target", CONTENT)
def test_files(serve, protocol, target):
    server = serve()

    def exchange():
        with server.connect() if protocol == "h1" else server.connect_h2() as client:
            answer = client.ask(target)
            assert answer.status != 200 or answer.body == CONTENT[target]
            return answer.status

    assert fail_each(server, exchange) > 1
