# SPDX-License-Identifier: Apache-2.0
"""A block server of nginx as a host, and several blocks that are one host here."""

import os

from . import nginx_settings as settings
from .model import Host, Scope
from .nginx_content import convert_if, convert_return, convert_rewrite, convert_try_files, set_try_files
from .nginx_context import Context, full_path, skip_unknown
from .nginx_locations import convert_locations
from .nginx_main import convert_main
from .nginx_words import TLS_ROWS, UNNEEDED
from .report import Node

OLD_PROTOCOLS = {"SSLv2", "SSLv3", "TLSv1", "TLSv1.1"}


def convert_server(context: Context, node: Node) -> None:
    host = Host([], node.place, base=Scope(outer=context.http, node=node))
    context.host, context.named, context.used_named = host, {}, set()
    host.base.values["ifs"] = []
    for each in node.block or ():
        if each.word == "location" and each.args and each.args[0].startswith("@"):
            context.named[each.args[0]] = each
    later, own = [], {each.word for each in node.block or ()}
    common = [each for each in context.http.values.get("tls", ()) if each.word not in own]
    for each in [*common, *(node.block or ())]:
        if each.word in SERVER:
            SERVER[each.word](context, host, each)
        elif each.word in LATER:
            later.append(each)
        elif each.word in TLS_ROWS and each.args:
            host.tls.append((TLS_ROWS[each.word], full_path(each.args[0])))
        elif each.word != "location" and not settings.convert_setting(context, host.base, each):
            skip_unknown(context, each)
    for each in later:
        LATER[each.word](context, host, host.base, each)
    if "fallback" in host.base.values:
        set_try_files(context, host, *host.base.values.pop("fallback"))
    settings.finish_scope(host.base)
    convert_locations(context, host, [each for each in node.block or () if each.word == "location"])
    finish_host(context, host)
    context.config.hosts.append(host)


# ── words of a server ──


def set_listen(context, host, node):
    value, *options = node.args or ["80"]
    host.first |= "default_server" in options or "default" in options
    if value.startswith("unix:"):
        address = value
    else:
        name, _, port = value.rpartition(":") if not value.endswith("]") else (value, "", "80")
        if not port.isdigit():
            name, port = value, "80"
        address = port if name in ("", "*", "0.0.0.0", "[::]") else f"{name}:{port}"
    listen = address + " tls" * ("ssl" in options) + " proxy" * ("proxy_protocol" in options)
    if listen not in host.listens:
        host.listens.append(listen)


def set_names(context, host, node):
    for name in node.args:
        if name in ("_", "", '""', "localhost.localdomain"):
            continue
        if name.startswith("~"):
            context.skip(node, f"{name}: names are names or wildcards such as *.example.org, no expressions")
        elif name.startswith("."):
            host.names += [name[1:], "*" + name]
        elif "*" in name[1:] or (name.startswith("*") and not name.startswith("*.")):
            context.skip(node, f"{name}: a wildcard is the first part of a name, as in *.example.org")
        elif name == "$hostname":
            context.skip(node, "the name of the machine is written as a name")
        else:
            host.names.append(name)
    host.names = list(dict.fromkeys(host.names))


def set_protocols(context, host, node):
    if set(node.args) == {"TLSv1.3"}:
        host.tls.append(("Profile", "modern"))
    elif OLD_PROTOCOLS & set(node.args):
        context.note(node, "TLS 1.2 and 1.3 are offered, no older ones")
    else:
        context.drop(node, UNNEEDED["ssl_ciphers"])


def set_verify(context, host, node):
    value = {"on": "Required", "optional": "Optional"}.get(node.args[0] if node.args else "")
    if value:
        host.tls.append(("ClientCertificate", value))
    else:
        context.skip(node, "ClientCertificate is Off, Optional or Required")


def set_ssl(context, host, node):
    if node.args == ["on"]:
        host.listens = [each if " tls" in each else each + " tls" for each in host.listens]


def set_server_wide(context, host, node):
    convert_main(context, node)


def set_internal(context, host, node):
    context.drop(node, "each host has its rules")


SERVER = {"listen": set_listen, "server_name": set_names, "ssl_protocols": set_protocols,
          "ssl_verify_client": set_verify, "ssl": set_ssl, "server_tokens": set_server_wide}
SERVER.update({word: set_server_wide for word in (
    "keepalive_timeout", "keepalive_requests", "client_header_timeout", "set_real_ip_from", "real_ip_header",
    "limit_req_zone")})
LATER = {"return": convert_return, "rewrite": convert_rewrite, "if": convert_if, "try_files": convert_try_files}


# ── what several directives say together ──


def finish_host(context: Context, host: Host) -> None:
    base = host.base
    if not any(" tls" in listen for listen in host.listens):
        host.tls = []
    if not host.listens:
        host.listens.append("80")
    for name in context.named:
        if name not in context.used_named:
            context.skip(context.named[name], f"no try_files or error_page leads to {name}")
    root = base.value("root") or next((scope.values["root"] for scope in host.scopes if "root" in scope.values and
                                       scope.pattern == "/"), None)
    if root and not (base.content and base.content.kind in ("redirect", "respond") and not host.scopes):
        host.set_key("DocumentRoot", root)
    for key, name in (("Indexfile", "index"), ("Precompressed", "precompressed"), ("SymLink", "links")):
        if base.value(name) and root and not (name == "links" and name not in base.values):
            host.set_key(key, base.value(name))
    if base.value("index", "").split() in (["index.html", "index.htm"], ["index.html"]):
        host.keys = [row for row in host.keys if row[0] != "Indexfile"]
    add_error_pages(context, host, root)
    add_logs(context, host)


def add_error_pages(context: Context, host: Host, root) -> None:
    rows = []
    for node, statuses, target in base_error_pages(host):
        page = target.partition("?")[0]
        if page.endswith(".php"):
            context.skip(node, "an error page is no script: TryFiles leads paths that do not exist to one")
            continue
        own = next((scope for scope in host.scopes if scope.pattern == "=" + page), None)
        elsewhere = own is not None and own.content and own.content.kind == "files" and dict(own.content.rows).get("To")
        if elsewhere or not root:
            folder = os.path.dirname(elsewhere) if elsewhere else ""
            context.skip(node, f"an error page is below the document root{f': copy it from {folder}' * bool(folder)}")
            host.scopes = [scope for scope in host.scopes if scope is not own]
            continue
        if own is not None and own.content and own.content.kind == "files" and not own.headers:
            host.scopes = [scope for scope in host.scopes if scope is not own]
        rows += [(status, page) for status in statuses if status not in ("414", "431")]
    if rows:
        host.base.settings["errors"] = tuple(rows)


def base_error_pages(host: Host) -> list:
    scopes = [host.base, *(scope for scope in host.scopes if scope.pattern == "/")]
    found = [each for scope in scopes for each in scope.values.get("error_pages", ())]
    return found or host.base.outer.values.get("error_pages", []) if host.base.outer else found


def add_logs(context: Context, host: Host) -> None:
    base = host.base
    log, rows, excepted, own = base.value("log"), [], [], []
    for scope in host.scopes:
        if "log" not in scope.values or scope.values["log"] == log:
            continue
        excepted.append(scope.pattern)
        if scope.values["log"]:
            own.append(("LOGGER", (("Match", scope.pattern), *scope.values["log"])))
    if excepted and log and base.values.get("log") is None:
        base.values["log"] = log  # so that the section is one of the host
    log = base.values.get("log")
    if log:
        rows += log
    if "error_log" in base.values:
        rows.append(("ErrorLog", base.values["error_log"]))
        if log is None and base.value("log"):
            rows = [*base.value("log"), *rows]
    if excepted and log:
        rows.append(("Except", " ".join(excepted)))
    if rows:
        order = {"AccessLog": 0, "ErrorLog": 1}
        host.sections.append(("LOGGER", tuple(sorted(rows, key=lambda row: order.get(row[0], 2)))))
    elif log == () and context.http.values.get("log"):
        host.sections.append(("LOGGER", (("AccessLog", "Off"),)))
    host.sections += own
