# SPDX-License-Identifier: Apache-2.0
"""What a server may say about files that change while it is asked: the history of each path, and the comparison of an
answer with it.

A writer records a change before it begins (`begin`) and after it has ended (`end`), both on the monotonic clock. A
state may be seen from its own `begin` to the `end` of the next one. A request that was sent at `asked` and answered
at `until` may see each state that was current at some time from `since` to `until`, where `since` is `asked` less the
age that the mode of the cache allows:

    ── state 1 ──┤begin  end├── state 2 ──┤begin  end├── state 3 ──
                                  since      asked  until
"""

import contextlib
import functools
import hashlib
import itertools
import time
from typing import NamedTuple

from .client import parse_date

BLOCK = 64
WAIT_SECONDS = 60


@functools.lru_cache(maxsize=1024)
def stream(name, version, size):
    """The bytes of a version of a file; a shorter body is the beginning of them."""
    head = f"{name} {version}\n".encode()
    return (head + hashlib.shake_128(head).digest(size))[:size]


class Content:
    """A version of a file: the first `length` bytes of its stream. `mtime` (ns) is None until a writer knows it."""

    kind = "file"

    def __init__(self, name, version, length, room, mtime=None):
        self.name, self.version, self.length, self.room, self.mtime = name, version, length, room, mtime

    def __repr__(self):
        return f"{self.name} v{self.version} ({self.length} bytes, tag {self.tag() if self.mtime else None})"

    def body(self):
        return stream(self.name, self.version, self.room)[: self.length]

    def seconds(self):
        return self.mtime // 1_000_000_000

    def tag(self, coding=None):
        """Without W/: with `ETag Portable` it is made of what the test sets."""
        return f'"{self.length:x}-{self.mtime:x}{"-" + coding if coding else ""}"'


class Coded(NamedTuple):
    """A content that is sent as a variant."""

    content: Content
    coding: str
    kind = "file"


class Status(NamedTuple):
    """An answer without a file."""

    status: int
    kind = "status"


MISSING, DENIED, FOLDER = Status(404), Status(403), Status(301)


class State:
    def __init__(self, outcome, begin, end=None):
        self.outcome, self.begin, self.end = outcome, begin, end


class Window(NamedTuple):
    """When a state must have been current to be seen: `root_since` is the same for the path of the root, and
    `torn_since` for the bytes of files that are written in place."""

    asked: float
    since: float
    root_since: float
    torn_since: float
    until: float


class Slot:
    """A path below a root, or a link, or a root: what it was, and when. One writer changes it."""

    def __init__(self, name, outcome=MISSING):
        self.name, self.states, self.writes = name, [State(outcome, 0.0, 0.0)], []

    def __repr__(self):
        return f"<{self.name}: {self.now}>"

    @property
    def now(self):
        return self.states[-1].outcome

    def states_between(self, since, until):
        """The newest first."""
        found = []
        for state in reversed(self.states):
            if state.begin <= until:
                found.append(state)
            if state.end is not None and state.end < since:
                break
        return found

    def outcomes_between(self, since, until):
        return [state.outcome for state in self.states_between(since, until)]

    def outcomes(self, window):
        return self.outcomes_between(window.since, window.until)

    def was_written(self, window):
        """Was it written in place while it may have been read?"""
        return any(
            begin <= window.until and (end[0] is None or end[0] >= window.torn_since)
            for begin, end in reversed(self.writes)
        )


@contextlib.contextmanager
def changing(outcomes, in_place=(), passing=None):
    """Records a change of some slots (slot to its new outcome), and of the bytes of those `in_place`. The outcome
    `passing` may be seen during the change."""
    begin, end = time.monotonic(), [None]
    states = [State(outcome, begin) for outcome in outcomes.values()]
    if passing:
        for slot in outcomes:
            slot.states.append(State(passing, begin, begin))
    for slot in in_place:
        slot.writes.append((begin, end))
    for slot, state in zip(outcomes, states):
        slot.states.append(state)
    yield
    end[0] = time.monotonic()
    for state in states:
        state.end = end[0]


# ── paths whose answer several slots decide ──


class Joined:
    """The answer is `resolve` of the outcomes of all slots, each of which may be of another age."""

    def __init__(self, name, resolve, *slots):
        self.name, self.resolve, self.slots = name, resolve, slots

    def __repr__(self):
        return f"<{self.name}: {list(self.slots)}>"

    def outcomes(self, window):
        await_known(self.slots, window)
        found = (self.resolve(*each) for each in itertools.product(*(slot.outcomes(window) for slot in self.slots)))
        return list(dict.fromkeys(found))

    def was_written(self, window):
        return any(slot.was_written(window) for slot in self.slots)


class Below:
    """A path below a root that is swapped: `root` holds the number of the release, `slots` the path in each."""

    def __init__(self, name, root, slots):
        self.name, self.root, self.slots = name, root, slots

    def __repr__(self):
        return f"<{self.name}: root {self.root}, {self.slots}>"

    def current(self, window):
        return {self.slots[number] for number in self.root.outcomes_between(window.root_since, window.until)}

    def outcomes(self, window):
        return [outcome for slot in self.current(window) for outcome in slot.outcomes(window)]

    def was_written(self, window):
        return any(slot.was_written(window) for slot in self.current(window))


def await_known(views, window):
    """Waits until writers know the times of what they were changing."""
    deadline = time.monotonic() + WAIT_SECONDS
    for view in views:
        while any(outcome.kind == "file" and plain(outcome).mtime is None for outcome in view.outcomes(window)):
            assert time.monotonic() < deadline, f"{view} is being changed for ever"
            time.sleep(0.0005)


def plain(outcome):
    return outcome.content if isinstance(outcome, Coded) else outcome


# ── an answer ──


class Ask(NamedTuple):
    """A request; `view` says what its path is."""

    view: object
    path: str
    host: str = "on"
    method: str = "GET"
    accept: str = ""
    known: str = ""  # If-None-Match
    since: int = 0  # If-Modified-Since
    range: tuple = ()
    reported: bool = True  # the kernel reports all changes of the file by its name

    @property
    def key(self):
        return self.path, self.host, self.accept

    def fields(self):
        made = []
        if self.accept:
            made.append(f"Accept-Encoding: {self.accept}")
        if self.known:
            made.append(f"If-None-Match: {self.known}")
        if self.since:
            made.append("If-Modified-Since: " + time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(self.since)))
        if self.range:
            made.append("Range: bytes={}-{}".format(*self.range))
        return made


def opaque(tag):
    return tag and tag.removeprefix("W/")


def expected_status(ask, content, tag, modified):
    if ask.known:
        if opaque(ask.known) == tag:
            return 304
    elif ask.since and modified <= ask.since:
        return 304
    if ask.range and ask.method == "GET":
        return 206 if ask.range[0] < content.length else 416
    return 200


def find_fault(ask, answer, outcome):
    """Why the answer is not what this outcome owes; None if it is."""
    if outcome.kind == "status":
        return None if answer.status == outcome.status else f"{answer.status}, not {outcome.status}"
    content, coding = (outcome.content, outcome.coding) if isinstance(outcome, Coded) else (outcome, None)
    tag = content.tag(coding)
    modified = min(content.seconds(), parse_date(answer["Date"]))
    status = expected_status(ask, content, tag, modified)
    if answer.status != status:
        return f"{answer.status}, not {status}"
    if status == 416:
        wanted = f"bytes */{content.length}"
        return None if answer["Content-Range"] == wanted else f"{answer['Content-Range']}, not {wanted}"
    if opaque(answer["ETag"]) != tag:
        return f"the tag {answer['ETag']}, not {tag}"
    if answer["Last-Modified"] and parse_date(answer["Last-Modified"]) != modified:
        return f"modified at {answer['Last-Modified']}, not {modified}"
    if status == 304:
        return None
    if answer["Content-Encoding"] != coding:
        return f"coding {answer['Content-Encoding']}, not {coding}"
    return find_body_fault(ask, answer, content)


def find_body_fault(ask, answer, content):
    first, last = 0, content.length - 1
    if answer.status == 206:
        first, last = ask.range[0], min(ask.range[1], last)
        wanted = f"bytes {first}-{last}/{content.length}"
        if answer["Content-Range"] != wanted:
            return f"{answer['Content-Range']}, not {wanted}"
    if answer.length != last + 1 - first:
        return f"{answer.length} bytes, not {last + 1 - first}"
    if ask.method != "HEAD" and answer.body != content.body()[first : last + 1]:
        return "another body"
    return None


def is_mixed(ask, answer, outcomes):
    """Of a file that is written in place, answers may be a mixture: each block is of one of its versions, or the zeros
    that the kernel puts where a file was cut."""
    if answer.status not in (200, 206):
        return answer.status in (304, 416)
    versions = {(c.name, c.version, c.room) for c in map(plain, outcomes) if c.kind == "file"}
    streams = [stream(*version) for version in versions]
    first = ask.range[0] if answer.status == 206 else 0
    for at in range(0, len(answer.body), BLOCK):
        block = answer.body[at : at + BLOCK]
        if any(block) and not any(is_of(block, each[first + at : first + at + BLOCK]) for each in streams):
            return is_small_mixture(block, [each[first + at :] for each in streams])
    return True


def is_of(block, wanted):
    return block == wanted[: len(block)]


def is_small_mixture(block, streams):
    """A block that was copied while it was written, each byte of one of the versions: a processor copies in pieces, and
    in no certain order."""
    return all(byte == 0 or any(byte == each[at] for each in streams) for at, byte in enumerate(block))


def check(ask, answer, window):
    """Fails if the answer is none that the history allows; None means a visible end. Returns 1 if it was mixed."""
    if answer is None:
        assert ask.view.was_written(window), f"an end amid {ask} that nobody wrote at that time"
        return 1
    await_known([ask.view], window)
    faults = []
    for outcome in ask.view.outcomes(window):
        fault = find_fault(ask, answer, outcome)
        if fault is None:
            return 0
        faults.append((outcome, fault))
    if ask.view.was_written(window) and is_mixed(ask, answer, [outcome for outcome, _ in faults]):
        return 1
    raise AssertionError(explain(ask, answer, window, faults))


def explain(ask, answer, window, faults):
    """What was allowed, what came, and which earlier or later state it was of."""
    rows = [f"{ask.method} {ask.path} of {ask.host}, {ask.fields()}: {answer}, {answer.body[:60]!r}"]
    rows += [f"  allowed: {outcome}, but: {fault}" for outcome, fault in faults[:12]]
    for slot in find_slots(ask.view):
        rows.append(f"  {slot.name}, in seconds after the request, which took {window.until - window.asked:.4f}:")
        for state in slot.states_between(window.asked - 10, window.until)[:12]:
            end = "not ended" if state.end is None else f"{state.end - window.asked:+.4f}"
            owed = isinstance(ask.view, Slot) and find_fault(ask, answer, state.outcome) is None
            rows.append(f"    {state.begin - window.asked:+.4f} {end} {state.outcome}{' <- this one' if owed else ''}")
    return "\n".join(rows)


def find_slots(view):
    if isinstance(view, Joined):
        return view.slots
    if isinstance(view, Below):
        return [view.root, *view.slots]
    return [view]
