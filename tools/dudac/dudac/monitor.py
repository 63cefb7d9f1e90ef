# SPDX-License-Identifier: Apache-2.0
"""What fails a check besides its responses: mistakes in the use of the API, which the framework logs, and the end of
the server."""

import queue
import re
import time

from .events import Events

SECONDS = 30  # until the log is read
END_SECONDS = 5  # from the loss of a connection to the end of the server, if that is the reason
# Calls of services begin such lines; msg->warn() of a service has no call before its text.
MISTAKE = re.compile(r"^\S+Z (?:warn|error) +service \S+: ((?:\w+->\w+\(|HandlerTimeout: |task: |descriptor \d+ is not "
                     r"watched |the response has no status: ).*)$")


class Monitor:
    """Takes the events of a server while checks run. Without a server it has those of requests only."""

    def __init__(self, events: Events, server=None):
        self.events, self.server = events, server
        self.mistakes, self.status = [], None  # the exit status or negative signal of the server
        self.has_lost = self.was_refused = False  # a connection

    @property
    def has_ended(self) -> bool:
        return self.status is not None

    def note(self, kind: str, value) -> None:
        if kind == "line" and (match := MISTAKE.match(value)):
            self.mistakes.append(match[1])
        elif kind == "ended":
            self.status = value
        elif kind == "lost":
            self.has_lost = True
            self.was_refused |= value

    def note_lines(self, lines: list) -> None:
        for line in lines:
            self.note("line", line)

    def await_answers(self, count: int) -> list:
        """Waits for the events ("answer", (number, value)) of so many threads. Returns the values by number."""
        answers = {}
        while len(answers) < count:
            kind, value = self.events.get()
            if kind == "answer":
                answers |= [value]
            else:
                self.note(kind, value)
        return [answers[number] for number in range(count)]

    def settle(self) -> None:
        """Notes what the server has logged until now; and its end, if a connection was lost."""
        if self.server is None or self.has_ended:
            return
        self.server.flush()
        self.note_until("flushed", SECONDS)
        if self.has_lost:
            self.note_until("ended", END_SECONDS)
        self.has_lost = False

    def note_until(self, awaited: str, seconds: float) -> None:
        deadline, kind = time.monotonic() + seconds, None
        while kind != awaited and not self.has_ended:
            try:
                kind, value = self.events.get(deadline - time.monotonic())
            except queue.Empty:
                return
            self.note(kind, value)

    def note_rest(self) -> None:
        """Notes the events of a server that has ended."""
        while self.events.items:
            self.note(*self.events.get(0))

    def take_mistakes(self) -> list:
        """Returns those since the last call."""
        mistakes, self.mistakes = list(dict.fromkeys(self.mistakes)), []
        return mistakes
