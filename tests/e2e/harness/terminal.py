# SPDX-License-Identifier: Apache-2.0
"""A program on a pseudo terminal, and the screen that it draws, as text or as a picture."""

import codecs
import contextlib
import fcntl
import html
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from .server import await_true

SEQUENCE = re.compile(r"\x1b\[(?P<mode>\?)?(?P<numbers>[\d;]*)(?P<final>[A-Za-z])|\x1b(?P<other>[=>]|\(B)")
COLOURS = {30: "#1c2128", 31: "#e5534b", 32: "#57ab5a", 33: "#c69026", 34: "#539bf5", 36: "#39c5cf"}
MODES = {7: "wraps", 25: "cursor", 1049: "alternate"}


class Screen:
    """What a terminal shows. Knows the sequences that the shell uses; any other one is an error."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.modes = {"wraps": True, "cursor": True, "alternate": False}
        self.x = self.y = 0
        self.style, self.pending = (), ""
        self.complete = False  # a drawing has ended, and the next one has not begun
        self.cells = []
        self.erase()

    def erase(self):
        self.cells = [[(" ", ())] * self.columns for _ in range(self.rows)]

    def feed(self, text):
        text, self.pending = self.pending + text, ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                found = SEQUENCE.match(text, at)
                if not found:
                    assert len(text) - at < 20, f"unknown sequence {text[at : at + 20]!r}"
                    self.pending = text[at:]
                    return
                self.obey(found)
                at = found.end()
            else:
                self.put(text[at])
                at += 1

    def obey(self, found):
        numbers = [int(n) for n in (found["numbers"] or "").split(";") if n]
        match (found["mode"], found["final"]):
            case ("?", "h" | "l" as final):
                for number in numbers:
                    if number in MODES:
                        self.modes[MODES[number]] = final == "h"
            case (None, "H"):
                self.y, self.x = [n - 1 for n in numbers] or [0, 0]
                self.complete = False
            case (None, "K"):
                self.cells[self.y][self.x :] = [(" ", ())] * (self.columns - self.x)
            case (None, "J"):
                if numbers == [2]:
                    self.erase()
                else:
                    self.complete = True
                    self.cells[self.y][self.x :] = [(" ", ())] * (self.columns - self.x)
                    self.cells[self.y + 1 :] = [[(" ", ())] * self.columns for _ in range(self.rows - self.y - 1)]
            case (None, "m"):
                self.style = () if not numbers or numbers == [0] else (*self.style, *numbers)
            case (None, None):
                pass
            case _:
                raise AssertionError(f"unknown sequence {found[0]!r}")

    def put(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            assert self.y + 1 < self.rows, "the screen scrolls"
            self.y += 1
        else:
            assert character >= " " and not "\x7f" <= character <= "\x9f", f"control character {character!r}"
            assert self.x < self.columns, f"row {self.y} is wider than {self.columns}: {self.text()}"
            self.cells[self.y][self.x] = (character, self.style)
            self.x += 1

    def lines(self):
        return ["".join(character for character, _ in row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.lines())

    def html(self):
        """A page that shows the screen, for a picture."""
        rows = []
        for row in self.cells:
            cells = []
            for character, style in row:
                colour = next((COLOURS[n] for n in style if n in COLOURS), "#d1d7e0")
                colour = "#768390" if 2 in style else colour
                back = COLOURS[32] if 42 in style else "transparent"
                weight = "bold" if 1 in style else "normal"
                cells.append(
                    f'<i style="color:{colour};background:{back};font-weight:{weight}">{html.escape(character)}</i>'
                )
            rows.append("".join(cells))
        return (
            '<!doctype html><meta charset="utf-8"><title>terminal</title><style>'
            "body{margin:0;padding:12px;background:#1c2128;width:max-content}"
            "pre{margin:0;font:15px/18px 'DejaVu Sans Mono',monospace}"
            "i{font-style:normal;display:inline-block;width:9px;height:18px;overflow:hidden;vertical-align:top}"
            f"</style><pre>{chr(10).join(rows)}</pre>"
        )


class Terminal:
    """A program on a pseudo terminal of a size."""

    def __init__(self, argv, env, columns=80, rows=24):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(argv[0], [str(word) for word in argv], env)
        self.seen, self.screen = "", Screen(columns, rows)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def read(self, left):
        """What the program writes within so many seconds; empty: nothing. EOFError: it has ended."""
        if not select.select([self.fd], [], [], left)[0]:
            return ""
        try:
            return self.decoder.decode(os.read(self.fd, 65536))
        except OSError:
            raise EOFError from None

    def wait(self, pattern, seconds=60):
        """Waits for text of a program that writes lines."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} not in {self.seen[-2000:]!r}"
            try:
                self.seen += self.read(left)
            except EOFError:
                raise AssertionError(f"ended before {pattern!r}: {self.seen[-2000:]!r}") from None
        self.seen = self.seen[found.end() :]
        return found

    def wait_screen(self, holds, seconds=60):
        """Waits until a function of the screen returns something true, which is returned."""
        deadline = time.monotonic() + seconds
        while not (found := self.screen.complete and holds(self.screen)):
            left = deadline - time.monotonic()
            assert left > 0, f"the screen is\n{self.screen.text()}"
            self.screen.feed(self.read(left))
        return found

    def resize(self, columns, rows):
        modes = self.screen.modes
        self.screen = Screen(columns, rows)
        self.screen.modes = modes
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        """Types what the program reads key by key: Control-D in a line that the terminal edits would be a NUL."""
        await_true(lambda: not termios.tcgetattr(self.fd)[3] & termios.ICANON, 20, "the program reads keys")
        os.write(self.fd, text.encode())

    def end(self, text=""):
        """Types, and returns the code that the program ends with."""
        if text:
            self.type(text)
        with contextlib.suppress(EOFError):
            while text := self.read(20):
                self.seen += text
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
