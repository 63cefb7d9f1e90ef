# SPDX-License-Identifier: Apache-2.0
"""The table of hooks in the page shows the plugins of the build, as `monkey -b` prints them."""

import os
import re

import pytest

from harness import build
from harness.server import run

PAGE = build.TOP / "docs" / "internals" / "way-of-a-request.md"
BEGIN, END = "by tests/e2e/test_way.py -->\n", "<!-- end: generated -->"
HOOKS = ["on_accept", "on_client", "on_head", "on_request", "on_content", "on_response", "on_done", "on_close"]

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="the small build does not print the hooks of plugins"),
]


def plugins():
    """Each plugin of the build with its hooks, in the order of the build."""
    text = run("-b").stdout
    found = dict(re.findall(r"^    (\w+) +[\d.]+  .*\n {16}(.*)$", text, re.M))
    order = re.search(r"^their order without plugins.load: (.*)$", text, re.M)[1].split()
    assert set(order) == set(found), text
    return {name: found[name].split() for name in order}


def drawing():
    rows = ["| hook | plugins |", "|---|---|"]
    for hook in HOOKS:
        called = [name for name, hooks in plugins().items() if hook in hooks]
        rows.append(f"| `{hook}` | {', '.join(called) or 'none in this build'} |")
    return "\n".join(rows) + "\n"


def test_the_page_shows_the_build():
    page = PAGE.read_text()
    head, _, rest = page.partition(BEGIN)
    if os.environ.get("MONKEY_UPDATE_DOCS"):
        PAGE.write_text(head + BEGIN + drawing() + END + rest.partition(END)[2])
    elif "compress" in plugins() and "logger" in plugins():
        assert rest.partition(END)[0] == drawing(), "not current: MONKEY_UPDATE_DOCS=1 pytest tests/e2e/test_way.py"


def test_known_hooks():
    found = plugins()
    assert found["liana"] == ["transport"]
    assert found["static"] == ["on_content", "on_response", "on_done"]
    assert found["redirect"] == ["on_head", "on_request"]
