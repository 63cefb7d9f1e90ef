# SPDX-License-Identifier: Apache-2.0
"""Scripts for tests of the plugin cgi."""

import contextlib
import pathlib
import subprocess
import sys

from .server import await_true, read_threads, section

PYTHON = sys.executable

# Echoes the variables, each as a line, and then the body.
ENVIRONMENT = f"""#!{PYTHON}
import os, sys
body = sys.stdin.buffer.read()
text = "".join(f"{{name}}={{value}}\\n" for name, value in sorted(os.environ.items()))
out = text.encode("utf-8", "surrogateescape") + b"\\n" + body
sys.stdout.write("Content-Type: text/plain\\n\\n")
sys.stdout.flush()
sys.stdout.buffer.write(out)
"""

HELLO = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nhello\\n'\n"


def write_scripts(folder, scripts):
    """Makes a folder of scripts that can be executed."""
    for name, text in scripts.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return folder


def cgi_section(folder, **keys):
    """Scripts of a folder below /cgi."""
    return section("CGI", {"Match": "/cgi", **({"Root": folder} if folder else {}), **keys})


def variables(body):
    """What the script ENVIRONMENT has written: the variables and the body."""
    text, _, rest = body.partition(b"\n\n")
    return dict(line.split("=", 1) for line in text.decode("utf-8", "surrogateescape").split("\n")), rest


def children(pid):
    """The processes that a process has started, with theirs; each of them may end meanwhile."""
    found, todo = [], [pid]
    while todo:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for text in read_threads(todo.pop(), "children").values():
                numbers = list(map(int, text.split()))
                found += numbers
                todo += numbers
    return found


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def starters(server):
    """The starters of the server, which are forked when they are needed."""
    return [pid for pid in children(server.pid) if name_of(pid) == "monkey: starter"]


def wait_no_scripts(server):
    """Waits until no process is left but the starters, not even a zombie."""
    await_true(lambda: set(children(server.pid)) == set(starters(server)), what="the ends of all scripts")


def compile_script(path, source):
    subprocess.run(["cc", "-O1", "-o", path, "-xc", "-"], input=source.encode(), check=True)
    return path
