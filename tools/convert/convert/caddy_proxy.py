# SPDX-License-Identifier: Apache-2.0
"""Backends of Caddy: reverse_proxy and php_fastcgi."""

import re

from .caddy_words import BALANCE, PROXY_UNNEEDED, STANDARD_HEADERS, VARIABLES
from .model import Content, Scope
from .report import Node
from .units import duration
from .writer import quote


def address(text: str) -> str:
    """`:3000`, `unix//run/a.sock` and `http://host:80` as an address; with https:// if it is so."""
    text = re.sub(r"^(?:unix//|unix+h2c//)", "unix:/", text)
    text = text.removeprefix("http://").rstrip("/")
    return f"127.0.0.1{text}" if text.startswith(":") else text


def make_proxy(site, node: Node, scope: Scope, args: list) -> Content:
    servers, group, rows = [address(arg) for arg in args], [], []
    for row in node.block or ():
        if row.word == "to":
            servers += [address(arg) for arg in row.args]
        else:
            convert_option(site, row, group, rows)
    servers = [server for server in servers if is_server(site, node, server)]
    scheme = "https" if any(server.startswith("https://") for server in servers) or ("Tls", "On") in rows else "http"
    servers = [server.removeprefix("https://") for server in servers]
    rows = [row for row in rows if row[0] != "Tls"]
    if not servers:
        return scope.content
    if len(servers) == 1 and not group:
        to = servers[0] if servers[0].startswith("unix:") else f"{scheme}://{servers[0]}"
    else:
        to = f"{scheme}://{add_group(site, servers, group)}"
    if scheme == "https" and "HostHeader" not in dict(rows):
        rows.insert(0, ("HostHeader", "Client"))
    if scope.values.get("strip") or (scope.outer and scope.outer.values.get("strip")):
        rows.insert(0, ("StripPrefix", "On"))
    return Content("proxy", (("To", to), *rows), node)


def is_server(site, node: Node, text: str) -> bool:
    good = "{" not in text and not text.startswith(("h2c://", "srv+", "fastcgi/"))
    if not good:
        site.report.skip(node, f"{text} is no address of a backend")
    return good


def add_group(site, servers: list, rows: list) -> str:
    """The name of a group with these servers."""
    made = (*(("Server", server) for server in servers), *rows)
    for name, section in site.config.sections:
        if name == "UPSTREAM" and section[1:] == made:
            return section[0][1]
    count = sum(name == "UPSTREAM" for name, _ in site.config.sections)
    group = "backend" + (str(count + 1) if count else "")
    site.config.sections.append(("UPSTREAM", (("Name", group), *made)))
    return group


def convert_option(site, row: Node, group: list, rows: list) -> None:
    value = row.args[0] if row.args else ""
    if row.word == "lb_policy" and value in BALANCE:
        group += BALANCE[value]
    elif row.word == "health_uri":
        group.append(("Check", value))
    elif row.word in ("health_interval", "health_timeout") and duration(value):
        group.append(("CheckInterval" if row.word == "health_interval" else "CheckTimeout", duration(value, 300)))
    elif row.word == "health_status" and re.fullmatch(r"\d{3}", value):
        group.append(("CheckStatus", value))
    elif row.word == "max_fails":
        group.append(("EjectAfter", value))
    elif row.word == "fail_duration" and duration(value):
        group.append(("EjectTime", duration(value, 300)))
    elif row.word == "header_up":
        convert_header(site, row, rows)
    elif row.word == "header_down" and value.startswith("-") and len(row.args) == 1:
        site.host.base.add_header("Remove", "", value[1:], True)
    elif row.word == "transport":
        for each in row.block or ():
            convert_transport(site, each, rows)
    elif row.word in PROXY_UNNEEDED:
        site.report.drop(Node(row.word, [], row.place), PROXY_UNNEEDED[row.word])
    else:
        site.report.skip(row, "the option is not known here")


def convert_header(site, row: Node, rows: list) -> None:
    name = row.args[0] if row.args else ""
    value = row.args[1] if len(row.args) > 1 else ""
    if name.lstrip("+-").lower() == "host":
        if value in ("{host}", "{hostport}", "{http.request.host}"):
            site.report.drop(Node("header_up Host", [], row.place), "Host is that of the client")
        elif "upstream" in value:
            rows.append(("HostHeader", "Backend"))
        elif "{" in value:
            site.report.skip(row, "HostHeader is Client, Backend or a name")
        else:
            rows.append(("HostHeader", value))
    elif name.lstrip("+-").lower() in STANDARD_HEADERS:
        site.report.drop(Node(f"header_up {name}", [], row.place), "this header is always sent")
    elif name.startswith("-"):
        rows.append(("RequestRemove", name[1:]))
    else:
        for variable, here in VARIABLES.items():
            value = value.replace(variable, here)
        if "{" in value or len(row.args) != 2:
            site.report.skip(row, "a value may have variables such as {remote_host}, and replaces no part of it")
        else:
            rows.append(("RequestSet", f"{name.lstrip('+')} {quote(value)}"))


def convert_transport(site, row: Node, rows: list) -> None:
    value = row.args[0] if row.args else ""
    if row.word == "tls":
        rows.append(("Tls", "On"))
    elif row.word == "tls_insecure_skip_verify":
        rows += [("Tls", "On"), ("TlsVerify", "Off")]
    elif row.word == "tls_server_name":
        rows.append(("TlsName", value))
    elif row.word == "dial_timeout" and duration(value):
        rows.append(("ConnectTimeout", duration(value)))
    elif row.word == "response_header_timeout" and duration(value):
        rows.append(("ResponseTimeout", duration(value)))
    elif row.word == "read_timeout" and duration(value):
        rows.append(("ReadTimeout", duration(value)))
    elif row.word == "write_timeout" and duration(value):
        rows.append(("SendTimeout", duration(value)))
    elif row.word in ("keepalive", "versions", "keepalive_idle_conns", "compression", "read_buffer", "write_buffer"):
        site.report.drop(Node(row.word, [], row.place), "connections are kept, and speak HTTP/1.1")
    else:
        site.report.skip(row, "the option is not known here")


def make_fastcgi(site, node: Node, scope: Scope, args: list) -> Content:
    rows = [("To", address(args[0]) if len(args) == 1 else add_group(site, [address(arg) for arg in args], []))]
    front = "/index.php"
    for row in node.block or ():
        if row.word == "root" and row.args:
            rows.append(("RemoteRoot", row.args[0]))
        elif row.word == "index" and row.args:
            front = None if row.args[0] == "off" else "/" + row.args[0]
        elif row.word == "env" and len(row.args) == 2:
            rows.append(("Params", f"{row.args[0]} {row.args[1]}"))
        elif row.word in ("read_timeout", "dial_timeout", "write_timeout"):
            convert_transport(site, row, rows)
        elif row.word in ("resolve_root_symlink", "capture_stderr"):
            site.report.drop(Node(row.word, [], row.place), "it is so")
        elif row.word == "split":
            rows.append(("Split", " ".join(row.args)))
        else:
            site.report.skip(row, "the option is not known here")
    if front:
        rows.append(("TryFiles", f"$path $path{front} {front}"))
    site.host.base.values["files"] = True
    return Content("fastcgi", tuple(rows), node)
