# SPDX-License-Identifier: Apache-2.0
"""Each answer is one version of one file, of the age that the mode of the cache allows, while files are written,
replaced, moved, linked, removed and closed."""

import os
import random
import time

import pytest

from harness import build
from harness.cache_consistency import FEW, MANY, MODES, Environment, Run, make_disk
from harness.cache_history import Ask, Content, Slot, State, Window, check
from harness.client import Response

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    pytest.mark.skipif(
        not (build.speaks("tls") and build.speaks("h2")), reason=f"the preset {build.PRESET} lacks tls or HTTP/2"
    ),
]

KINDS = ["disk", "tmpfs", "overlay"]
IN_EACH_RUN = {("tmpfs", "EachCycle")}
UNDER_LOAD = {("disk", "Notify 3s"), ("disk", "Revalidate 1s")}


def combine(marks_of):
    """Each kind of disk with each mode of the cache."""
    product = [(kind, mode) for kind in KINDS for mode in MODES]
    marks = [marks_of(pair) + [build.needs_cache] * (pair[1] != "none") for pair in product]
    return pytest.mark.parametrize("kind, mode", [pytest.param(*pair, marks=m) for pair, m in zip(product, marks)])


@pytest.fixture
def environment():
    """Starts an environment on a disk of this kind."""
    made = []

    def start(kind, mode, seed):
        if kind == "overlay" and not build.can_mount():
            pytest.skip("this user can have no mounts of its own")
        disk = make_disk(kind)
        made.append((disk, None))
        made.append((disk, Environment(disk.__enter__(), mode, seed)))
        return made[-1][1]

    yield start
    try:
        for _, one in made:
            if one is not None:
                one.server.stop()
    finally:
        for disk, one in made:
            if one is not None:
                one.server.kill()
            else:
                disk.__exit__(None, None, None)


def run(environment, answers, record_property):
    done = Run(environment, answers).execute()
    environment.server.assert_healthy()
    figures = {
        "answers": done.answers(),
        "changes": done.changes,
        "statuses": dict(done.statuses),
        "mixed": done.mixed,
        "lost": done.lost,
        "reloads": environment.reloads,
        "worst lateness, ms": round(done.lateness.worst * 1000, 1),
    }
    print(figures)
    record_property("figures", figures)
    assert {200, 206, 301, 304, 403, 404, 416} <= set(done.statuses), "some kinds of answers never came"
    assert done.mixed < done.answers() / 20
    return done


@combine(lambda pair: [] if pair in IN_EACH_RUN else [pytest.mark.load if pair in UNDER_LOAD else pytest.mark.slow])
def test_consistency(environment, kind, mode, record_property):
    seed = int(os.environ.get("MONKEY_SEED") or random.randrange(1 << 32))
    run(environment(kind, mode, seed), FEW, record_property)


@pytest.mark.timeout(3600)
@combine(lambda pair: [pytest.mark.slow])
def test_consistency_of_many(environment, kind, mode, record_property):
    """MONKEY_ANSWERS=1000000 takes two minutes each."""
    seed = int(os.environ.get("MONKEY_SEED") or random.randrange(1 << 32))
    run(environment(kind, mode, seed), int(os.environ.get("MONKEY_ANSWERS") or MANY), record_property)


# ── the check of an answer ──


class AnswerCase:
    """A file with two versions, the second from 10.0 to 10.1 on, and answers about it."""

    def __init__(self):
        self.old, self.new = (Content("f", n, 100 * n, 300, 10**18 + n) for n in (1, 2))
        self.slot = Slot("f", self.old)
        self.slot.states.append(State(self.new, 10.0, 10.1))

    def answer(self, content, body=None, tag=None, status=b"200 OK", extra=b""):
        body = content.body() if body is None else body
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()).encode()
        made = Response(
            b"HTTP/1.1 %s\r\nDate: %s\r\nContent-Length: %d\r\nETag: %s%s"
            % (status, date, len(body), (tag or content.tag()).encode(), extra),
            "GET",
        )
        made.body = body
        return made

    def check(self, answer, asked, since=None, until=None, **fields):
        window = Window(asked, since or asked, asked, asked, until or asked + 0.01)
        return check(Ask(self.slot, "/f", **fields), answer, window)


def test_the_check_knows_how_old_an_answer_is():
    case = AnswerCase()
    assert case.check(case.answer(case.old), 9.9) == 0
    assert case.check(case.answer(case.new), 9.9, until=10.01) == 0
    assert case.check(case.answer(case.old), 10.05) == 0
    assert case.check(case.answer(case.old), 10.5, since=10.05) == 0
    with pytest.raises(AssertionError, match="v1.* <- this one"):
        case.check(case.answer(case.old), 10.2)
    with pytest.raises(AssertionError):
        case.check(case.answer(case.new), 9.9)


@pytest.mark.parametrize(
    "change",
    [
        lambda case: case.answer(case.new, case.old.body()),
        lambda case: case.answer(case.new, case.new.body()[:-1]),
        lambda case: case.answer(case.new, case.new.body()[:-1] + bytes([case.new.body()[-1] ^ 1])),
        lambda case: case.answer(case.new, tag=case.old.tag()),
        lambda case: case.answer(case.old, tag=case.new.tag()),
        lambda case: case.answer(case.new, status=b"404 Not Found"),
        lambda case: case.answer(case.new, extra=b"\r\nLast-Modified: Sun, 13 Sep 2020 12:26:40 GMT"),
        lambda case: case.answer(case.new, extra=b"\r\nContent-Encoding: br"),
        lambda case: case.answer(case.new, b"", status=b"304 Not Modified"),
        lambda case: None,
    ],
)
def test_the_check_finds_mixtures(change):
    case = AnswerCase()
    with pytest.raises(AssertionError):
        case.check(change(case), 11.0)
    case.slot.writes.append((10.0, [10.1]))  # before the request
    with pytest.raises(AssertionError):
        case.check(change(case), 11.0)


def test_the_check_knows_what_is_being_written():
    """Bytes of both versions, and zeros, but not those of another file."""
    case = AnswerCase()
    case.slot.writes.append((10.0, [10.1]))
    half = case.old.body()[:70] + case.new.body()[70:100]
    assert case.check(case.answer(case.old, half), 9.9, until=10.05) == 1
    assert case.check(case.answer(case.old, case.old.body()[:30] + bytes(70)), 9.9, until=10.05) == 1
    pieces = case.new.body()[:64] + case.old.body()[64:72] + case.new.body()[72:80] + case.old.body()[80:100]
    assert case.check(case.answer(case.old, pieces), 9.9, until=10.05) == 1
    assert case.check(None, 9.9, until=10.05) == 1
    with pytest.raises(AssertionError):
        case.check(case.answer(case.old, Content("g", 1, 100, 300).body()), 9.9, until=10.05)


def test_the_check_knows_conditions_and_ranges():
    case = AnswerCase()
    extra = b"\r\nContent-Range: bytes 10-19/200"
    part = case.answer(case.new, case.new.body()[10:20], status=b"206 Partial Content", extra=extra)
    assert case.check(part, 11.0, range=(10, 19)) == 0
    for fields in ({}, {"range": (10, 20)}, {"known": case.new.tag()}):
        with pytest.raises(AssertionError):
            case.check(part, 11.0, **fields)
    assert case.check(case.answer(case.new, b"", status=b"304 Not Modified"), 11.0, known=f"W/{case.new.tag()}") == 0
    with pytest.raises(AssertionError):
        case.check(case.answer(case.new), 11.0, known=case.new.tag())
