# SPDX-License-Identifier: Apache-2.0
"""Backends of Apache: ProxyPass, balancers, and handlers that are FastCGI servers."""

import re

from .apache_words import BALANCE
from .model import Content, Scope
from .patterns import clean_prefix, expression, is_prefix
from .report import Node
from .units import duration

URL = re.compile(r"(?:unix:([^|]+)\|)?(https?|wss?|fcgi|scgi|balancer|ajp|h2c?)://([^/]*)(/.*)?")


def set_proxy_option(server, node: Node, scope: Scope, value: str) -> None:
    word = node.word.lower()
    if word == "proxypreservehost":
        scope.values["preserve"] = value.lower() == "on"
    elif word == "proxytimeout" and duration(value):
        rows = (("ReadTimeout", duration(value, 86400)), ("ResponseTimeout", duration(value, 86400)))
        scope.add_rows("proxy", *rows)
    elif word == "proxyerroroverride":
        if value.lower() == "on":
            scope.add_rows("proxy", ("InterceptErrors", "On"))
        else:
            server.report.drop(node, "it is off")
    elif word == "sslproxyverify" and value.lower() == "none":
        scope.add_rows("proxy", ("TlsVerify", "Off"))
    else:
        server.report.drop(node, "it is the default")


def read_options(server, node: Node, options: list, rows: list) -> None:
    """Options of ProxyPass: key=value."""
    for option in options:
        key, _, value = option.partition("=")
        if key == "timeout" and duration(value):
            rows += [("ReadTimeout", duration(value, 86400)), ("ResponseTimeout", duration(value, 86400))]
        elif key == "connectiontimeout" and duration(value):
            rows.append(("ConnectTimeout", duration(value)))
        elif key in ("nocanon",):
            rows.append(("Path", "Raw"))
        elif key in ("keepalive", "retry", "max", "min", "smax", "ttl", "acquire", "flushpackets", "enablereuse",
                     "disablereuse", "upgrade", "lbmethod", "stickysession", "interpolate", "responsefieldsize"):
            server.report.drop(Node(f"{node.word} {key}", [], node.place), "connections are kept, and limited by "
                               "[UPSTREAM]")
        else:
            server.report.skip(node, f"the option {option} is not known here")


def convert_pass(server, node: Node, scope: Scope, value: str) -> None:
    args = list(node.args)
    path = args.pop(0) if args and args[0].startswith("/") and scope is server.host.base else scope.pattern
    target, options = (args[0] if args else "!"), args[1:]
    one = Scope(clean_prefix(path) if path.startswith("/") else path, server.host.base, node, is_open=True)
    if target == "!":
        one.content = Content("files", (), node)
    else:
        one.content = make_backend(server, node, scope, one.pattern, path, target, options)
    if scope is not server.host.base and one.content is not None:
        scope.content = one.content
    elif one.content is not None:
        one.values["websocket"] = target.startswith(("ws:", "wss:"))
        server.handled.append(one)


def drop_websockets(server) -> None:
    """A backend for WebSocket is that of the same path for HTTP, if there is one."""
    patterns = [scope.pattern for scope in server.handled if not scope.values.get("websocket")]
    for scope in list(server.handled):
        if scope.values.get("websocket") and scope.pattern in patterns:
            server.report.drop(Node(scope.node.text(), [], scope.node.place), "WebSocket works without a line")
            server.handled.remove(scope)


def make_backend(server, node: Node, scope: Scope, pattern: str, path: str, target: str, options: list):
    match = URL.fullmatch(target)
    if not match or "$" in target:
        server.report.skip(node, f"{target} is no address of a backend")
        return None
    socket, scheme, name, to_path = match.groups()
    if scheme in ("ajp", "h2", "h2c"):
        server.report.skip(node, f"there is no {scheme} to backends")
        return None
    if scheme in ("ws", "wss"):
        scheme = scheme.replace("ws", "http")
    rows: list = []
    read_options(server, node, options, rows)
    if scheme in ("fcgi", "scgi"):
        to = f"unix:{socket}" if socket else name
        kind = "fastcgi" if scheme == "fcgi" else "scgi"
        return Content(kind, (("To", to), *((("Split", "Off"),) if kind == "fastcgi" and pattern != "/" else ())), node)
    if scheme == "balancer":
        group = use_group(server, node, f"balancer://{name}")
        if group is None:
            return None
        scheme, name = group
    to = f"unix:{socket}" if socket else f"{scheme}://{name}"
    slashless = (to_path or "/").rstrip("/")
    if is_prefix(pattern) and pattern != "/":
        if not slashless:
            rows.insert(0, ("StripPrefix", "On"))
        elif slashless != pattern:
            to += slashless
    elif slashless:
        to += slashless
    is_name = re.search(r"[a-z]", name.split(":")[0]) and not name.startswith("localhost") and not socket
    preserve = scope.value("preserve")
    if scheme == "https" and preserve:
        rows.insert(0, ("HostHeader", "Client"))
    elif scheme == "http" and is_name and not preserve and match[2] != "balancer":
        rows.insert(0, ("HostHeader", "Backend"))
    rows += list(scope.get("proxy") or ()) + list(scope.value("request_headers", ()))
    return Content("proxy", (("To", to), *rows), node)


def convert_pass_match(server, node: Node, scope: Scope, value: str) -> None:
    target = node.args[1] if len(node.args) > 1 else ""
    match = URL.fullmatch(re.sub(r"\$\d", "", target))
    if not match or match[2] not in ("fcgi", "http", "https"):
        server.report.skip(node, "To of [PROXY] has no captures")
        return
    one = Scope(expression(value), server.host.base, node, is_open=True)
    to = f"unix:{match[1]}" if match[1] else match[3]
    if match[2] == "fcgi":
        one.pattern = "*.php" if re.search(r"\\\.php\)?\$", value) else expression(r"\.php(/|$)")
        one.content = Content("fastcgi", (("To", to),), node)
    elif re.fullmatch(r"\^/\(\.\*\)\$?|\^\(/\.\*\)\$?", value):
        one.pattern, one.content = "/", Content("proxy", (("To", f"{match[2]}://{to}"),), node)
    elif re.sub(r"^\^|\(.*$|\$$", "", value) == (match[4] or ""):
        one.content = Content("proxy", (("To", f"{match[2]}://{to}"),), node)
    else:
        server.report.skip(node, "To of [PROXY] has no captures")
        return
    server.handled.append(one)


def convert_handler(server, node: Node, scope: Scope, value: str) -> None:
    """`SetHandler "proxy:unix:/run/php/php-fpm.sock|fcgi://localhost"`."""
    match = URL.match(value.removeprefix("proxy:"))
    if not value.startswith("proxy:") or not match or match[2] not in ("fcgi", "http"):
        server.report.skip(node, "programs run in [CGI], or in [FASTCGI] if they are servers")
        return
    to = f"unix:{match[1]}" if match[1] else match[3].rstrip("/")
    scope.content = Content("fastcgi" if match[2] == "fcgi" else "proxy", (("To", to),), node)


def add_member(server, node: Node, name: str) -> None:
    servers, rows = server.groups.setdefault(name, ([], []))
    word = node.word.lower()
    if word == "balancermember" and node.args:
        match = URL.fullmatch(node.args[0])
        if not match:
            server.report.skip(node, f"{node.args[0]} is no address of a backend")
            return
        options = []
        for option in node.args[1:]:
            key, _, value = option.partition("=")
            if key == "loadfactor":
                options.append(f"weight={value}")
            elif option == "status=+H":
                options.append("backup")
            else:
                read_options(server, node, [option], [])
        servers.append((match[2], " ".join([f"unix:{match[1]}" if match[1] else match[3], *options])))
    elif word == "proxyset":
        for option in node.args:
            key, _, value = option.partition("=")
            if key == "lbmethod" and value in BALANCE:
                rows += BALANCE[value] or (("Balance", "LeastLoaded"),)
            elif key == "stickysession":
                rows.append(("Balance", "Sticky"))
            else:
                read_options(server, node, [option], [])
    else:
        server.report.skip(node, "the word is not known here")


def use_group(server, node: Node, name: str):
    """The scheme and the name of a group; None: there is none."""
    servers, rows = server.groups.get(name.rstrip("/"), ([], []))
    if not servers:
        server.report.skip(node, f"there is no {name} with members")
        return None
    group = name.partition("://")[2].strip("/")
    rows = [row for row in rows if row != ("Balance", "LeastLoaded")] if rows else [("Balance", "RoundRobin")]
    section = ("UPSTREAM", (("Name", group), *(("Server", text) for _, text in servers), *rows))
    if section not in server.config.sections:
        server.config.sections.append(section)
    return servers[0][0], group
