# SPDX-License-Identifier: Apache-2.0
"""Does a server of a contest do what the others do? Asked before it is measured, since one that answers wrongly, writes
an access log or changes the congestion control cannot be compared. RFC 9110 says what is wrong; what it leaves
to a server, such as ranges, is noted."""

import contextlib
import os
import pathlib
import secrets
import socket
import ssl
from typing import NamedTuple

from .checks import Disqualified
from .congestion import list_congestion_controls
from .environment import FILES, read_content
from .proc import list_family

SECONDS = 10
ANSWER_BYTES_MAX = 8 << 20
LONG_AGO = "Sun, 06 Nov 1994 08:49:37 GMT"
ASKED, LINE_BYTES = 100, 16  # requests that would make an access log grow, and the least that each of them adds
ACCESS_MODES = os.O_WRONLY | os.O_RDWR


class Answer(NamedTuple):
    status: int
    headers: dict  # names in lower case
    body: bytes


def parse_answer(data):
    """Raises ValueError for what is no answer. Interim answers are skipped."""
    head, found, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode("latin1").split("\r\n")
    words = line.split(" ", 2)
    if not found or len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise ValueError(f"no answer of HTTP/1: {line[:60]!r}")
    if words[1].startswith("1"):
        return parse_answer(body)
    headers = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = join_chunks(body)
    return Answer(int(words[1]), headers, body)


def join_chunks(data):
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        if not length:
            return body
        body, data = body + data[:length], data[length + 2 :]
    raise ValueError("a chunked body without an end")


def connect(workload, server):
    sock = socket.create_connection(("127.0.0.1", server.port), SECONDS)
    if not workload.tls:
        return sock
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(sock)


def ask(workload, server, method, path, **headers):
    """One request on its own connection. Raises Disqualified where no answer comes."""
    lines = [f"{method} /{path} HTTP/1.1", "Host: localhost", "Connection: close", "User-Agent: wr"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    data = b""
    try:
        with connect(workload, server) as sock:
            sock.sendall("\r\n".join([*lines, "", ""]).encode("latin1"))
            while (part := sock.recv(65536)) and len(data) < ANSWER_BYTES_MAX:
                data += part
        return parse_answer(data)
    except (OSError, ValueError) as error:
        server.check_health()
        raise Disqualified(f"{server.name} has no answer to {method} /{path}: {error}") from None


class Question(NamedTuple):
    """What the checks know: a file of the workload, and the answer to a plain request for it."""

    workload: object
    server: object
    path: str
    content: bytes
    plain: Answer

    def ask(self, method="GET", path=None, **headers):
        return ask(self.workload, self.server, method, self.path if path is None else path, **headers)


def is_whole(question, answer):
    return answer.status == 200 and answer.body == question.content


def describe(answer):
    return f"status {answer.status} and {len(answer.body)} bytes"


# Each check returns (features, what is wrong or nothing).


def check_get(question):
    answer = question.plain
    length = answer.headers.get("content-length")
    if not is_whole(question, answer):
        return {}, f"answers GET with {describe(answer)} instead of the {len(question.content)} bytes of the file"
    if length and length != str(len(question.content)):
        return {}, f"answers GET with Content-Length: {length} and {len(answer.body)} bytes"
    return {}, ""


def check_head(question):
    answer = question.ask("HEAD")
    length, wanted = answer.headers.get("content-length"), question.plain.headers.get("content-length")
    if answer.status != 200 or answer.body:
        return {}, f"answers HEAD with {describe(answer)}"
    if length and wanted and length != wanted:
        return {}, f"answers HEAD with Content-Length: {length}, and GET with {wanted}"
    return {}, ""


def check_missing(question):
    answer = question.ask(path=f"no-such-file-{secrets.token_hex(8)}")
    return {}, "" if answer.status == 404 else f"answers with status {answer.status} instead of 404 where no file is"


def check_ranges(question):
    """A server may ignore Range and send the whole file."""
    size, content = len(question.content), question.content
    for header, first, last in (("bytes=2-5", 2, 5), ("bytes=-3", size - 3, size - 1)):
        answer = question.ask(Range=header)
        if is_whole(question, answer):
            return {"ranges": "no"}, ""
        wanted = f"bytes {first}-{last}/{size}"
        if answer.status != 206 or answer.body != content[first : last + 1]:
            return {}, f"answers Range: {header} with {describe(answer)} instead of 206 and {last + 1 - first} bytes"
        if answer.headers.get("content-range", "").lower() != wanted:
            found = answer.headers.get("content-range")
            return {}, f"answers Range: {header} with Content-Range: {found}, not {wanted}"
    answer = question.ask(Range=f"bytes={size}-")
    if answer.status != 416 and not is_whole(question, answer):
        return {}, f"answers a range beyond the end of the file with {describe(answer)}"
    return {"ranges": "yes"}, ""


def check_validators(question):
    """A server need not have validators, nor answer 304; but 304 means that the file has not changed."""
    kinds = (("etag", "If_None_Match", '"not-this-one"'), ("last-modified", "If_Modified_Since", LONG_AGO))
    used = []
    for name, header, other in kinds:
        value = question.plain.headers.get(name)
        if not value:
            continue
        said, answer = header.replace("_", "-"), question.ask(**{header: other})
        if not is_whole(question, answer):
            return {}, f"answers {said}: {other} with {describe(answer)} instead of the whole file"
        answer = question.ask(**{header: value})
        if answer.status == 304 and answer.body:
            return {}, f"answers {said} with 304 and a body"
        if answer.status != 304 and not is_whole(question, answer):
            return {}, f"answers {said} with {describe(answer)}"
        used += [name] if answer.status == 304 else []
    return {"validators": " and ".join(used) or "none"}, ""


def check_congestion_control(question):
    """Of a connection that has had an answer."""
    wanted = question.server.congestion_control
    with connect(question.workload, question.server) as sock:
        sock.sendall(f"HEAD /{question.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        sock.recv(65536)
        found = list_congestion_controls(question.server.port)
    if wanted and found - {wanted}:
        return {}, f"sends with the congestion control {', '.join(sorted(found))}; that of the others is {wanted}"
    return {"congestion control": ", ".join(sorted(found))} if found else {}, ""


def check_log(question):
    watch = WrittenFiles(question.server)
    for _ in range(ASKED):
        question.ask()
    return {}, watch.find_log(ASKED)


CHECKS = check_get, check_head, check_missing, check_ranges, check_validators, check_congestion_control, check_log


class WrittenFiles:
    """The files of a server's folder, and those that its processes may write, with their sizes."""

    def __init__(self, server):
        self.server = server
        self.sizes = self.read_sizes()

    def read_sizes(self):
        paths = [path for path in pathlib.Path(self.server.folder).rglob("*") if path.is_file()]
        paths += [path for pid in list_family(self.server.pid) for path in list_written(pid)]
        sizes = {}
        for path in paths:
            with contextlib.suppress(OSError):  # it may be gone
                sizes[os.path.realpath(path)] = os.path.getsize(path)
        return sizes

    def find_log(self, requests):
        """What is wrong when a file has grown as a log of these requests does; or nothing."""
        for path, size in self.read_sizes().items():
            grown = size - self.sizes.get(path, 0)
            if grown >= LINE_BYTES * requests:
                return f"writes a log: {os.path.basename(path)} has grown by {grown:,} bytes with {requests:,} requests"
        return ""


def list_written(pid):
    """Regular files that a process has open for writing."""
    for name in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            flags = pathlib.Path(f"/proc/{pid}/fdinfo/{name.name}").read_text("ascii").split("flags:")[1].split()[0]
            if int(flags, 8) & ACCESS_MODES and name.is_file():
                yield name


def is_qualified(workload):
    """Whether the checks are about this workload: files over HTTP/1.1, which the server itself has."""
    return workload.protocol == "1.1" and not (
        workload.websocket or workload.backend or workload.body or workload.coding or "log" in workload.variants
    ) and (workload.path in FILES or workload.paths > 1)  # fmt: skip


def shows_log(workload):
    """Whether a file that grows with the requests is an access log: a server without descriptors may write about each
    client that it refuses."""
    return not workload.descriptors


def qualify(workload, server):
    """The features of a server that answers rightly, {name: text}. Raises Disqualified."""
    features, path = {}, workload.list_paths()[0]
    plain = ask(workload, server, "GET", path)
    question = Question(workload, server, path, read_content(server.root, path), plain)
    for check in CHECKS:
        found, wrong = check(question)
        if wrong:
            raise Disqualified(f"{server.name} {wrong}")
        features |= found
    return features
