# SPDX-License-Identifier: Apache-2.0
"""Asks the kernel which congestion control the connections of a server use (sock_diag(7)): a server may set another one
than the default of the network namespace."""

import errno
import os
import socket
import struct

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3
INET_DIAG_CONG = 4
TCP_ESTABLISHED = 1
HEADER = struct.Struct("=IHHII")  # nlmsghdr
REQUEST = struct.Struct("=BBBxI")  # the beginning of inet_diag_req_v2; an inet_diag_sockid follows
SOCKET_ID_BYTES, MESSAGE_BYTES = 48, 72  # inet_diag_sockid, inet_diag_msg
PORT_AT = 4  # in inet_diag_msg: its source port, in network byte order
ATTRIBUTE = struct.Struct("=HH")  # rtattr
ANSWER_BYTES, SECONDS = 1 << 16, 5


def align(length):
    return (length + 3) & ~3


def make_request(port):
    socket_id = struct.pack("!HH", port, 0).ljust(SOCKET_ID_BYTES, b"\0")
    body = REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 1 << (INET_DIAG_CONG - 1), 1 << TCP_ESTABLISHED) + socket_id
    return HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body


def split_messages(data):
    """Yields (type, body) of each netlink message."""
    while len(data) >= HEADER.size:
        length, kind, *_ = HEADER.unpack_from(data)
        if not HEADER.size <= length <= len(data):
            return
        yield kind, data[HEADER.size : length]
        data = data[align(length) :]


def parse_socket(body):
    """(port, congestion control) of an inet_diag_msg; the name is empty where the kernel does not say it."""
    port, name, rest = struct.unpack_from("!H", body, PORT_AT)[0], "", body[MESSAGE_BYTES:]
    while len(rest) >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(rest)
        if length < ATTRIBUTE.size:
            break
        if kind == INET_DIAG_CONG:
            name = rest[ATTRIBUTE.size : length].split(b"\0")[0].decode("ascii", "replace")
        rest = rest[align(length) :]
    return port, name


def list_congestion_controls(port):
    """Those of the established connections whose local port is `port`, in the network namespace of this thread."""
    found = set()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as sock:
        sock.settimeout(SECONDS)
        sock.send(make_request(port))
        while True:
            for kind, body in split_messages(sock.recv(ANSWER_BYTES)):
                if kind == NLMSG_DONE:
                    return found - {""}
                if kind == NLMSG_ERROR:
                    code = -struct.unpack_from("=i", body)[0] or errno.EIO
                    raise OSError(code, os.strerror(code))
                local, name = parse_socket(body)
                found |= {name} if local == port else set()
