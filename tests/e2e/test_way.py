# SPDX-License-Identifier: Apache-2.0
"""The drawing of a request's way shows which plugins of the build are asked when; it comes from their own tables."""

import os
import re

import pytest

from harness import build
from harness.server import run

PAGE = build.TOP / "docs" / "internals" / "way-of-a-request.md"
BEGIN, END = "by tests/e2e/test_way.py -->\n", "<!-- end: generated -->"
MOMENTS = ["on_accept", "on_head", "on_request", "on_content", "on_response", "on_done", "on_close"]

pytestmark = [
    pytest.mark.wire,
    pytest.mark.skipif(build.PRESET == "small", reason="the small build does not tell the moments of plugins"),
]


def plugins():
    """Each plugin of the build with its moments, in the order of the build."""
    text = run("-b").stdout
    found = dict(re.findall(r"^    (\w+) +[\d.]+  .*\n {16}(.*)$", text, re.M))
    order = re.search(r"^their order without plugins.load: (.*)$", text, re.M)[1].split()
    assert set(order) == set(found), text
    return {name: found[name].split() for name in order}


def drawing():
    rows = ["| moment | who is asked |", "|---|---|"]
    for moment in MOMENTS:
        asked = [name for name, moments in plugins().items() if moment in moments]
        rows.append(f"| `{moment}` | {', '.join(asked) or 'nobody in this build'} |")
    return "\n".join(rows) + "\n"


def test_the_page_shows_the_build():
    page = PAGE.read_text()
    head, _, rest = page.partition(BEGIN)
    if os.environ.get("MONKEY_UPDATE_DOCS"):
        PAGE.write_text(head + BEGIN + drawing() + END + rest.partition(END)[2])
    elif "compress" in plugins() and "logger" in plugins():
        assert rest.partition(END)[0] == drawing(), "not current: MONKEY_UPDATE_DOCS=1 pytest tests/e2e/test_way.py"


def test_known_moments():
    found = plugins()
    assert found["liana"] == ["transport"]
    assert found["static"] == ["on_content", "on_response", "on_done"]
    assert found["redirect"] == ["on_request"]
