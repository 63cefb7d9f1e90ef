# SPDX-License-Identifier: Apache-2.0
"""Directives of nginx that hold for http, a server or a location alike: one function each, in the table SETTINGS."""

import re

from .model import KINDS, Scope
from .nginx_context import Context, full_path, has_variable, translate
from .nginx_words import (COMPRESSED, DEFAULT_ROWS, ROWS, STANDARD_HEADERS, STANDARD_PARAMS)
from .report import Node
from .units import duration, read_seconds, strict_transport
from .writer import quote

LEVELS = {"debug": "debug", "info": "info", "notice": "info", "warn": "warn", "error": "error", "crit": "error"}
PATHS = {"Users", "TlsCA", "TlsCertificate", "TlsKey"}
COMMON_SECTIONS = ("compress", "listing", "auth", "clients", "errors")


def convert_setting(context: Context, scope: Scope, node: Node) -> bool:
    """Returns whether the directive is one of those; `scope` has what it says then, or the report does."""
    if node.word in ROWS and node.args:
        set_row(context, scope, node)
    elif node.word in SETTINGS and node.block is None:
        SETTINGS[node.word](context, scope, node, node.args[0] if node.args else "")
    else:
        return False
    return True


def set_row(context: Context, scope: Scope, node: Node) -> None:
    kind, key, make = ROWS[node.word]
    value = make(node.args[0])
    if value is None or has_variable(node.args[0]) is not None:
        context.skip(node, f"{node.args[0]} is no value of {key}")
        return
    if (kind, key, value) in DEFAULT_ROWS:
        context.drop(node, f"{value} is the default")
        return
    if key in PATHS:
        value = full_path(value)
    rows = [(key, value)]
    if key == "ReadTimeout":
        rows.append(("ResponseTimeout", value))
    if kind == "auth" and not scope.get("auth"):
        scope.values["users"] = value
        if scope.value("realm"):
            scope.settings["auth"] = (("Realm", scope.value("realm")), *rows)
        return
    scope.add_rows(kind, *rows)


# ── one function for each word: context, scope, node, the first argument ──


def set_root(context, scope, node, value):
    if has_variable(value):
        context.skip(node, f"the folder depends on ${has_variable(value)}")
    else:
        scope.values["root"] = full_path(value).rstrip("/") or "/"


def set_index(context, scope, node, value):
    names = [name for name in node.args if "/" not in name and not has_variable(name)]
    if len(names) < len(node.args):
        context.skip(node, "Indexfile has names without a path")
    if names:
        scope.values["index"] = " ".join(names)


def set_gzip(context, scope, node, value):
    scope.values["gzip"] = value
    scope.settings["compress"] = () if value == "off" else (("On", "On"),)


def set_gzip_types(context, scope, node, value):
    if all(name == "*" or name.startswith(COMPRESSED) for name in node.args):
        context.drop(node, "these types are compressed by default")
    else:
        scope.add_rows("gzip", ("Types", " ".join(["text/html", *node.args])))


def set_gzip_static(context, scope, node, value):
    coding = "br" if node.word.startswith("brotli") else "gzip"
    if value in ("on", "always"):
        scope.values["precompressed"] = " ".join(filter(None, [scope.value("precompressed"), coding]))
    else:
        context.drop(node, "it is off")


def set_listing(context, scope, node, value):
    scope.settings["listing"] = (("Enabled", "On"),) if value == "on" else ()


def set_realm(context, scope, node, value):
    if value == "off":
        scope.settings["auth"] = ()
        return
    scope.values["realm"] = value
    users = scope.value("users")
    if users:
        scope.settings["auth"] = (("Realm", value), ("Users", users))


def set_auth_request(context, scope, node, value):
    context.skip(node, "write [AUTH] with Type Forward, and the URL of the login server in To")


def set_satisfy(context, scope, node, value):
    scope.values["satisfy"] = value


def set_rule(context, scope, node, value):
    scope.rules = scope.rules if scope.rules is not None else []
    action, network = ("Action", node.word), ("Network", value.replace("unix:", "unix"))
    if value == "all":
        scope.rules.append((action,))
    elif scope.rules and scope.rules[-1][-1] == action and scope.rules[-1][0][0] == "Network":
        networks = f"{scope.rules[-1][0][1]} {network[1]}"
        scope.rules[-1] = (("Network", networks), action)
    else:
        scope.rules.append((network, action))


def add_header(context, scope, node, value):
    if len(node.args) < 2:
        context.skip(node, "a header has a name and a value")
        return
    text, on_errors = node.args[1], "always" in node.args[2:]
    if has_variable(text):
        context.skip(node, f"the value of a header cannot have ${has_variable(text)}")
    elif value.lower() == "strict-transport-security" and strict_transport(text) and context.host and \
            scope is context.host.base:
        context.host.tls.append(("StrictTransportSecurity", strict_transport(text)))
    elif value.lower() in ("alt-svc", "server", "date", "content-length", "connection"):
        context.skip(node, f"the server itself sets {value}")
    elif value.lower() == "content-type" and scope.pattern != "/":
        scope.values["default_type"] = text
    elif text == "":
        context.drop(node, "an empty value is no header")
    else:
        scope.add_header("Set", value, quote_value(text), on_errors)


def quote_value(text: str) -> str:
    return quote(text)


def set_expires(context, scope, node, value):
    seconds = 3650 * 86400 if value == "max" else read_seconds(value)
    if value == "off":
        context.drop(node, "it is off")
    elif value in ("epoch", "0") or value.startswith("-"):
        scope.add_header("Set", "Cache-Control", "no-cache", False)
    elif seconds and len(node.args) == 1:
        scope.add_header("Expires", "", duration(value, 3650 * 86400, 1) or "3650d", False)
    else:
        context.skip(node, f"{' '.join(node.args)} is no value of Expires")


def set_log(context, scope, node, value):
    if value == "off":
        scope.values["log"] = ()
        return
    if value.startswith("syslog:") or has_variable(value):
        context.skip(node, "write AccessLog syslog in [LOGGER]" if value.startswith("syslog:") else
                     "the name of a log cannot have variables")
        return
    name = node.args[1] if len(node.args) > 1 and "=" not in node.args[1] else "combined"
    if any(arg.startswith("if=") for arg in node.args):
        context.note(node, "all requests are logged; Status, Except and SlowerThan of [LOGGER] select some")
    scope.values["log"] = (("AccessLog", full_path(value)), ("Format", make_format(context, node, name)))


def make_format(context, node, name) -> str:
    text = context.formats.get(name, "")
    if name == "combined" or is_combined(text):
        return "combined"
    made, unknown = translate(text)
    if unknown or not text:
        context.note(node, f"the format is combined: {name} has ${unknown}" if unknown else
                     f"the format is combined: {name} is not known")
        return "combined"
    return quote(made)


def is_combined(text: str) -> bool:
    """Whether a format is the usual one, perhaps with the address that a proxy has sent at its end."""
    usual = ('$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
             '"$http_user_agent"')
    return re.sub(r"\s+", " ", text).replace(' "$http_x_forwarded_for"', "").strip() == usual


def set_error_log(context, node):
    """Of the block main or http: the error log of the process."""
    if node.args and not node.args[0].startswith(("syslog:", "memory:")):
        context.config.set_server("ErrorLog", full_path(node.args[0]) if node.args[0] != "stderr" else "stderr")
        level = LEVELS.get(node.args[1], "error") if len(node.args) > 1 else "error"
        if level != "error":
            context.config.set_server("LogLevel", level)
    else:
        context.skip(node, "ErrorLog of [SERVER] is a file or stderr")


def set_host_error_log(context, scope, node, value):
    if value.startswith(("syslog:", "memory:")):
        context.skip(node, "ErrorLog of [LOGGER] may be syslog")
    elif value == "/dev/null":
        context.drop(node, "there is no error log without a line")
    else:
        scope.values["error_log"] = full_path(value)


def set_error_page(context, scope, node, value):
    *statuses, target = node.args or [""]
    code = next((status for status in statuses if status.startswith("=")), "")
    statuses = [status for status in statuses if not status.startswith("=")]
    if statuses == ["497"]:
        context.note(node, "requests without TLS at a port with TLS get 400")
    elif statuses == ["404"] and (target.startswith("@") or code in ("=", "=200")) and not has_variable(target):
        scope.values["fallback"] = (node, ["$uri", "$uri/", target])
    elif not statuses or not target.startswith("/") or has_variable(target):
        context.skip(node, "an error page is a file below the document root")
    elif code:
        context.skip(node, f"the status of an error stays: {code} is not possible")
    else:
        scope.values.setdefault("error_pages", []).append((node, statuses, target))


def set_default_type(context, scope, node, value):
    scope.values["default_type"] = value


def read_zone(context, node):
    values = dict(arg.partition("=")[::2] for arg in node.args)
    name, rate = values.get("zone", "").split(":")[0], values.get("rate", "")
    match = re.fullmatch(r"(\d+)r/([sm])", rate)
    if not match or not node.args[0].startswith(("$binary_remote_addr", "$remote_addr")):
        context.skip(node, "limits are for clients: [CLIENT_LIMITS] counts by address")
        return
    context.zones[name] = f"{match[1]}/{match[2]}"
    context.drop(node, "each section [CLIENT_LIMITS] has its Rate and its clients")


def set_rate(context, scope, node, value):
    values = dict(arg.partition("=")[::2] for arg in node.args)
    rate = context.zones.get(values.get("zone", ""))
    if not rate:
        context.skip(node, f"there is no rate for the zone {values.get('zone', '')}")
        return
    burst = int(values.get("burst", "0") or 0) + 1
    scope.add_rows("clients", ("Rate", rate), ("Burst", str(burst)))
    if "burst" in values and "nodelay" not in node.args:
        context.note(node, "requests above the rate are not delayed: those above Burst get 429")
    elif "limit_status" not in scope.values:
        context.note(node, "requests above the rate get 429")


def set_limit_status(context, scope, node, value):
    scope.values["limit_status"] = value
    if value == "429":
        context.drop(node, "it is 429")
    else:
        context.skip(node, "the status is 429")


def set_connections(context, scope, node, value):
    scope.add_rows("clients", ("MaxRequests", node.args[-1]))


def set_header_of_request(context, scope, node, value):
    made, unknown = translate(node.args[1] if len(node.args) > 1 else "")
    name = value.lower()
    if name == "host":
        is_client = node.args[1:] in (["$host"], ["$http_host"], ["$host:$server_port"], ["$server_name"])
        scope.values["host_header"] = "Client" if is_client else "Backend" if "$proxy_host" in node.args[1:] else made
        if is_client:
            context.drop(Node("proxy_set_header Host", [], node.place), "Host is that of the client")
        elif unknown and unknown != "proxy_host":
            context.skip(node, f"${unknown} has no counterpart here")
            del scope.values["host_header"]
    elif name in STANDARD_HEADERS:
        context.drop(Node(f"proxy_set_header {value}", [], node.place),
                     "WebSocket works without a line, and connections to the backend are kept"
                     if name in ("upgrade", "connection") else "this header is always sent, or that of the client is")
    elif unknown:
        context.skip(node, f"${unknown} has no counterpart here")
    else:
        scope.values["request_headers"] = scope.values.get("request_headers", ()) + (
            ("RequestSet", f"{value} {quote_value(made)}") if made else ("RequestRemove", value),)


def set_buffering(context, scope, node, value):
    if value == "off":
        scope.add_rows("proxy" if node.word.startswith("proxy") else "fastcgi", ("BufferResponse", "Off"))
    else:
        context.drop(node, "responses are buffered")


def set_request_buffering(context, scope, node, value):
    gateway = node.word.partition("_")[0]
    if (gateway == "proxy") == (value == "off"):
        context.drop(node, "it is the default")
    else:
        scope.add_rows(gateway, ("SpoolRequest", value.capitalize()))


def set_intercept(context, scope, node, value):
    if value == "on":
        scope.add_rows(node.word.partition("_")[0], ("InterceptErrors", "On"))
    else:
        context.drop(node, "it is off")


def set_proxy_redirect(context, scope, node, value):
    if value == "off":
        scope.add_rows("proxy", ("RewriteLocation", "Off"))
    else:
        context.drop(node, "RewriteLocation is on: URLs of the backend become those of the host")


def hide_header(context, scope, node, value):
    if value.lower() in ("server", "x-accel-redirect"):
        context.drop(node, f"{value} of a backend is not passed on")
    else:
        (context.host.base if context.host else scope).add_header("Remove", "", value, False)


def set_param(context, scope, node, value):
    made, unknown = translate(node.args[1] if len(node.args) > 1 else "")
    if value == "SCRIPT_FILENAME" and made.startswith("/") and "$" in made:
        scope.values["script_root"] = made.partition("$")[0].rstrip("/")
        context.drop(Node(f"{node.word} {value}", [], node.place), "variables of FastCGI are sent")
    elif value in STANDARD_PARAMS:
        context.drop(Node(f"{node.word} {value}", [], node.place), "variables of FastCGI are sent")
    elif value == "HTTP_AUTHORIZATION":
        scope.add_rows("fastcgi", ("PassAuthorization", "On"))
    elif unknown:
        context.skip(node, f"${unknown} has no counterpart here")
    else:
        scope.settings["fastcgi"] = tuple(scope.get("fastcgi") or ()) + (("Params", f"{value} {quote_value(made)}"),)


def set_links(context, scope, node, value):
    scope.values["links"] = {"off": "On", "on": "Off"}.get(value, "Inside")


SETTINGS = {
    "root": set_root, "index": set_index, "gzip": set_gzip, "brotli": set_gzip, "gzip_types": set_gzip_types,
    "gzip_static": set_gzip_static, "brotli_static": set_gzip_static, "brotli_types": set_gzip_types,
    "autoindex": set_listing, "auth_basic": set_realm, "auth_request": set_auth_request, "satisfy": set_satisfy,
    "allow": set_rule, "deny": set_rule, "add_header": add_header, "expires": set_expires, "access_log": set_log,
    "error_log": set_host_error_log, "error_page": set_error_page, "default_type": set_default_type,
    "limit_req": set_rate, "limit_req_status": set_limit_status, "limit_conn": set_connections,
    "proxy_set_header": set_header_of_request, "proxy_buffering": set_buffering, "fastcgi_buffering": set_buffering,
    "proxy_request_buffering": set_request_buffering, "fastcgi_request_buffering": set_request_buffering,
    "proxy_intercept_errors": set_intercept, "fastcgi_intercept_errors": set_intercept,
    "proxy_redirect": set_proxy_redirect, "proxy_hide_header": hide_header, "fastcgi_hide_header": hide_header,
    "fastcgi_param": set_param, "scgi_param": set_param, "disable_symlinks": set_links,
}


# ── what was collected, as settings of sections ──


def finish_scope(scope: Scope) -> None:
    """Puts together what several directives have said of a scope."""
    if scope.settings.get("compress") or (scope.settings.get("gzip") and scope.get("compress")):
        scope.settings["compress"] = (("On", "On"), *(scope.get("gzip") or ()))
    if scope.rules == [(("Action", "allow"),)]:
        scope.rules = []
    auth = scope.settings.get("auth")
    if auth and scope.value("satisfy") == "any":
        scope.settings["auth"] = (*auth, ("Satisfy", "any"))
    headers = scope.headers or {}
    if "cache-control" in headers and "" in headers and headers[""][0] == "Expires":
        seconds = int(read_seconds(headers[""][2]) or 0)
        key, name, value, on_errors = headers["cache-control"]
        if "max-age" not in value and "no-" not in value:
            value = quote_value(f"max-age={seconds}, " + value.strip('"'))
            headers["cache-control"] = (key, name, value, on_errors)


def make_common(context: Context) -> None:
    """The settings of http, as keys of [SERVER] and sections for all hosts."""
    http, config = context.http, context.config
    finish_scope(http)
    for row in http.settings.get("limits") or ():
        config.set_server(*row)
    config.common = http
    for kind in COMMON_SECTIONS:
        if http.settings.get(kind):
            config.sections.append((KINDS[kind][0], tuple(r for r in http.settings[kind] if r[0] != "On")))
    for rows in http.rules or ():
        config.sections.append(("RULES", rows))
    if http.values.get("log") and any(host.base.values.get("log") is None for host in config.hosts):
        config.sections.append(("LOGGER", http.values["log"]))
    if http.values.get("links"):
        config.set_server("SymLink", http.values["links"])
