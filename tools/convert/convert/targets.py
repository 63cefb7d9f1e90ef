# SPDX-License-Identifier: Apache-2.0
"""Targets of redirects: their parts, and the section that does the same."""

import re
import typing

from .model import Content
from .patterns import body_of, is_prefix

URI = re.compile(r"(?:(https?|\$scheme|\{scheme\})://(\$\w+|\{[\w.]+\}|[^/$?{]*))?(.*)", re.S)
QUERY = re.compile(r"(?:\$is_args\$args|\?\$args|\?\$query_string|\$is_args\$query_string|\?\{query\})$")


class Target(typing.NamedTuple):
    scheme: str  # empty: that of the request
    authority: str
    own_host: bool  # the host that the client asks for
    path: str  # what stands before the path of the request, or all
    whole: bool  # the path of the request and its query follow
    query: bool  # the query of the request follows
    unknown: typing.Optional[str]  # the first variable that is none of those


def read_target(text: str, scheme: str, hosts: tuple, uris: tuple) -> Target:
    """The parts of a target, where `scheme`, `hosts` and `uris` are how a server writes those of the request."""
    match = URI.fullmatch(text)
    own_scheme, authority, path = match[1] or "", match[2] or "", match[3]
    own_host = authority in hosts or (bool(own_scheme) and authority == "")
    query = QUERY.search(path) is not None
    path = QUERY.sub("", path)
    uri = next((each for each in uris if path.endswith(each)), None)
    path = path.removesuffix(uri) if uri else path
    unknown = re.search(r"\$\{?([A-Za-z_]\w*)|\{([a-z_.]+)\}", path + ("" if own_host else authority))
    return Target("" if own_scheme == scheme else own_scheme, authority, own_host, path, uri is not None, query,
                  (unknown[1] or unknown[2]) if unknown else None)


def make_redirect(pattern: str, uri: str, target: Target, code: str, node) -> Content:
    """A section [REDIRECT] for the paths of a pattern. What follows the prefix of Match is appended to To."""
    rows, to = [], uri
    if target.whole and not is_prefix(pattern) and not pattern.startswith("="):
        rows.append(("Match", f"~^(?={body_of(pattern)})(.*)$"))
        to = (uri if uri != "/" else "") + "$1"
    elif target.whole:
        path = pattern.lstrip("=")
        to = uri.rstrip("/") + (path if path != "/" else "/")
    keep = target.whole or target.query
    if target.query and not target.whole and is_prefix(pattern):
        rows.append(("Match", f"~^{body_of(pattern)}" if pattern != "/" else "~^/"))
    rows.append(("To", to))
    if code != "301":
        rows.append(("Status", code))
    if not keep:
        rows.append(("KeepPath", "Off"))
    return Content("redirect", tuple(rows), node)
