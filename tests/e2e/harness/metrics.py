# SPDX-License-Identifier: Apache-2.0
"""What the plugin status shows: its section, scrapes, events, and programs that check them."""

import json
import re
import subprocess

import pytest

from . import build
from .server import await_true, section

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
OPENMETRICS = "Accept: application/openmetrics-text; version=1.0.0"

needs_status = pytest.mark.skipif(
    not (build.PLUGINS / "status.so").exists(), reason=f"the preset {build.PRESET} has no plugin status"
)


def status_section(**keys):
    return section("STATUS", {"Enabled": "On", **keys})


def parse(text):
    """{(name, frozenset of labels): value} of a text in one of the formats; the last line may be # EOF."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.match(line).groups()
        key = name, frozenset(LABEL.findall(labels or ""))
        assert key not in found, f"twice: {line}"
        found[key] = float(value)
    return found


def total(samples, name, **labels):
    """The sum of the samples of that name that have these labels."""
    wanted = {(key, value) for key, value in labels.items()}
    return sum(value for (each, have), value in samples.items() if each == name and wanted <= have)


def scrape(client, *fields):
    answer = client.ask("/metrics", *fields)
    assert answer.status == 200, answer
    return parse(answer.body.decode())


def status_of(client, *fields):
    answer = client.ask("/status", *fields)
    assert (answer.status, answer["Content-Type"]) == (200, "application/json"), answer
    return json.loads(answer.body)


def await_status(client, condition, what):
    """Asks until the status fulfils the condition: requests are counted when they have ended."""
    seen = []

    def is_fulfilled():
        seen[:] = [status_of(client)]
        return condition(seen[0])

    try:
        await_true(is_fulfilled, 30, what)
    except AssertionError as error:
        raise AssertionError(f"{error}: {seen}") from None
    return seen[0]


def check_metrics(text):
    """What promtool says."""
    result = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=120)
    assert result.returncode == 0 and not result.stderr + result.stdout, result


class Events:
    """A stream of server-sent events over HTTP/1.1."""

    def __init__(self, client, path="/status/events"):
        self.client = client
        client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        self.head = client.head()
        self.data = b""

    def read(self, mark):
        while mark not in self.data:
            size = int(self.client.until(b"\r\n"), 16)
            if size == 0:
                self.client.until(b"\r\n")
                return None
            self.data += self.client.exactly(size)
            self.client.exactly(2)
        found, _, self.data = self.data.partition(mark)
        return found

    def next(self):
        """The next document; None at the end of the stream."""
        while (event := self.read(b"\n\n")) is not None:
            if event.startswith(b"data: "):
                return json.loads(event.removeprefix(b"data: "))
        return None
