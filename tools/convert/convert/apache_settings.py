# SPDX-License-Identifier: Apache-2.0
"""Directives of Apache for a host, or for some of its paths: one function for each word."""

import os
import re

from .apache_proxy import convert_handler
from .apache_words import CODES, GLOBS, STANDARD_HEADERS, UNNEEDED, VERIFY
from .model import Content, Scope
from .patterns import clean_prefix, expression
from .report import Node
from .targets import Target, make_redirect
from .units import size, strict_transport, write_seconds
from .writer import quote

EXPIRES = re.compile(r"(?:access|now|modification)\s+(?:plus\s+)?(.*)", re.I)
UNITS = {"year": 31536000, "month": 2592000, "week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}


def full_path(path: str) -> str:
    return path if path.startswith("/") else os.path.join("/etc/apache2", path)


def set_value(name):
    def set_one(server, node, scope, value):
        scope.values[name] = full_path(value) if name.startswith("auth_") else value.lower() if name == "satisfy" \
            else value

    return set_one


def set_type(server, node, scope, value):
    if value.lower() != "basic":
        server.report.skip(node, "logins are Basic, Bearer or Forward")


def set_names(server, node, scope, value):
    for name in node.args:
        name = re.sub(r"^https?://", "", name)
        name = re.sub(r":\d+$", "", name)
        if "*" in name and not re.fullmatch(r"\*\.[\w.-]+", name):
            server.report.skip(node, f"{name}: a wildcard is the first part of a name, as in *.example.org")
        elif name not in server.host.names:
            server.host.names[len(server.host.names) if node.word.lower() == "serveralias" else 0:0] = [name]


def set_root(server, node, scope, value):
    server.host.set_key("DocumentRoot", full_path(value).rstrip("/") or "/")
    server.host.base.values["root"] = server.root()


def set_index(server, node, scope, value):
    names = [name for name in node.args if "/" not in name and name != "disabled"]
    if scope is not server.host.base or len(names) < len(node.args):
        server.report.skip(node, "Indexfile is for the host, and has names without a path")
    elif names and names != ["index.html"]:
        server.host.set_key("Indexfile", " ".join(names))


def set_options(server, node, scope, value):
    for option in node.args:
        sign, name = option[:1] if option[:1] in "+-" else "", option.lstrip("+-").lower()
        if name == "indexes":
            scope.settings["listing"] = () if sign == "-" else (("Enabled", "On"),)
        elif name in ("followsymlinks", "symlinksifownermatch"):
            if sign != "-":
                server.host.set_key("SymLink", "On" if name == "followsymlinks" else "Inside")
        elif name == "execcgi" and sign != "-":
            if scope.content is None and not server.host.base.values.get("scripts"):
                server.report.skip(node, "scripts are those of [CGI]")
        elif name in ("none", "all", "multiviews", "includes", "includesnoexec", "execcgi"):
            if name in ("multiviews", "includes") and sign != "-":
                server.report.skip(node, f"{option}: files have one name, and are sent as they are")
        else:
            server.report.skip(node, f"{option} is not known here")


def set_override(server, node, scope, value):
    if value.lower() == "none":
        server.report.drop(node, "there are no .htaccess files")
    else:
        server.report.note(node, "there are no .htaccess files: what they say is written in sections")


def add_alias(server, node, scope, value):
    if len(node.args) != 2:
        server.report.skip(node, "an alias has a path and a folder")
        return
    to = full_path(node.args[1]).rstrip("/") or "/"
    one = Scope(clean_prefix(value), server.host.base, node, is_open=True)
    one.content = Content("files", (("To", to),), node)
    server.host.scopes.append(one)


def add_scripts(server, node, scope, value):
    if len(node.args) != 2:
        server.report.skip(node, "ScriptAlias has a path and a folder")
        return
    one = Scope(clean_prefix(value), server.host.base, node, is_open=True)
    folder = node.args[1].rstrip("/")
    one.content = Content("cgi", (("Root" if value.endswith("/") else "Script", folder),), node)
    server.host.base.values.setdefault("scripts", {})[folder] = one.pattern
    server.host.scopes.append(one)


def set_error_page(server, node, scope, value):
    page = " ".join(node.args[1:])
    if page.startswith(("http://", "https://")):
        server.report.skip(node, "an error page is a file or a text")
    elif page.startswith("/") and server.root() or page and not page.startswith("/"):
        row = (value, page if page.startswith("/") else quote(page))
        scope.settings["errors"] = (*(scope.settings.get("errors") or ()), row)
    else:
        server.report.skip(node, "an error page is below the document root")


def set_header(server, node, scope, value):
    args = node.args[1:] if value.lower() in ("always", "onsuccess") else list(node.args)
    on_errors = value.lower() == "always"
    action, name, text = (args + ["", "", ""])[:3]
    action = action.lower()
    if len(args) > 3 and action != "edit":
        server.report.skip(node, "a header has no conditions here")
    elif action == "unset":
        if name.lower() in ("server", "x-powered-by", "etag") and name.lower() != "x-powered-by":
            server.report.drop(node, "ETag and ServerHeader are keys of [SERVER]")
        else:
            scope.add_header("Remove", "", name, on_errors)
    elif action not in ("set", "append", "add", "merge", "setifempty") or "%{" in text:
        server.report.skip(node, "a header is set, added or removed, without variables")
    elif name.lower() == "strict-transport-security" and strict_transport(text) and scope is server.host.base:
        server.host.tls.append(("StrictTransportSecurity", strict_transport(text)))
    else:
        scope.add_header("Set" if action in ("set", "setifempty") else "Add", name, quote(text), on_errors)


def set_request_header(server, node, scope, value):
    action, name, text = ([arg.lower() for arg in node.args[:1]] + node.args[1:] + ["", "", ""])[:3]
    if name.lower() in STANDARD_HEADERS:
        server.report.drop(Node(f"RequestHeader {name}", [], node.place), "this header is always sent")
    elif action == "unset":
        scope.values["request_headers"] = scope.values.get("request_headers", ()) + (("RequestRemove", name),)
    elif action in ("set", "add") and "%" not in text:
        scope.values["request_headers"] = scope.values.get("request_headers", ()) + (
            ("RequestSet", f"{name} {quote(text)}"),)
    else:
        server.report.skip(node, "RequestSet of [PROXY] sets a header")


def read_expires(text: str):
    match = EXPIRES.fullmatch(text.strip())
    if match:
        parts = re.findall(r"(\d+)\s+(year|month|week|day|hour|minute|second)s?", match[1])
        return sum(int(number) * UNITS[unit] for number, unit in parts)
    match = re.fullmatch(r"[AM](\d+)", text.strip())
    return int(match[1]) if match else None


def set_expires(server, node, scope, value):
    text = " ".join(node.args) if node.word.lower() == "expiresdefault" else " ".join(node.args[1:])
    seconds = read_expires(text)
    pattern = GLOBS.get(value) if node.word.lower() == "expiresbytype" else scope.pattern
    if seconds is None or pattern is None:
        server.report.skip(node, "Expires of [HEADERS] is for paths, such as *.png")
        return
    row = ("Set", "Cache-Control", "no-cache", False) if seconds == 0 else (
        "Expires", "", write_seconds(min(seconds, 3650 * 86400)), False)
    if pattern == scope.pattern:
        scope.add_header(*row)
        return
    one = next((each for each in server.host.scopes if each.pattern == pattern and each.values.get("typed")), None)
    if one is None:
        one = Scope(pattern, server.host.base, node, is_open=True, values={"typed": True})
        server.host.scopes.append(one)
    one.add_header(*row)


def set_filter(server, node, scope, value):
    if value.lower() in ("deflate", "brotli_compress", "inflate;deflate"):
        scope.settings["compress"] = (("On", "On"),)
    else:
        server.report.skip(node, "bodies are not changed")


def set_log(server, node, scope, value):
    target = value if value.startswith("/") else full_path(value)
    if value.startswith("|"):
        server.report.skip(node, "AccessLog is a file, stdout, stderr or syslog")
        return
    if len(node.args) > 2:
        server.report.note(node, "all requests are logged; Status, Except and SlowerThan of [LOGGER] select some")
    name = node.args[1].lower() if len(node.args) > 1 else "common"
    form = "common" if name == "common" else "combined"
    if name not in ("common", "combined", "vhost_combined") and node.word.lower() == "customlog":
        server.report.note(node, f"the format is combined: {name[:40]} is not converted")
    set_log_row(server, ("AccessLog", target), ("Format", form))


def set_error_log(server, node, scope, value):
    if value.startswith(("|", "syslog")):
        server.report.skip(node, "ErrorLog of [LOGGER] is a file, stdout, stderr or syslog")
    else:
        set_log_row(server, ("ErrorLog", full_path(value)))


def set_log_row(server, *rows):
    old = next((section for section in server.host.sections if section[0] == "LOGGER"), None)
    if old and rows[0][0] not in dict(old[1]):
        number = server.host.sections.index(old)
        made = [*old[1], *rows]
        order = {"AccessLog": 0, "ErrorLog": 1}
        server.host.sections[number] = ("LOGGER", tuple(sorted(made, key=lambda row: order.get(row[0], 2))))
    else:
        server.host.sections.append(("LOGGER", rows))


def set_limit(server, node, scope, value):
    number = size(value)
    if number:
        scope.add_rows("limits", ("MaxBodySize", "1024G" if number == "0" else number))
    else:
        server.report.skip(node, f"{value} is no size")


def set_ssl(server, node, scope, value):
    if value.lower() != "on":
        server.report.drop(node, "it is off")


def set_protocols(server, node, scope, value):
    if [arg.lstrip("+-").lower() for arg in node.args if not arg.startswith("-")] == ["tlsv1.3"]:
        server.host.tls.append(("Profile", "modern"))
    else:
        server.report.drop(node, UNNEEDED["sslciphersuite"])


def set_verify(server, node, scope, value):
    made = VERIFY.get(value.lower())
    if made and scope is server.host.base:
        server.host.tls.append(("ClientCertificate", made))
    elif made:
        scope.settings["auth"] = (("Type", "Off"), ("ClientCertificate", "On"))
        server.report.note(node, "the host must ask for a certificate: write ClientCertificate Optional in [TLS]")
    else:
        server.report.drop(node, "it is off")


def set_depth(server, node, scope, value):
    server.host.tls.append(("ClientDepth", value))


def add_redirect(server, node, scope, value):
    word, args = node.word.lower(), list(node.args)
    code = "301" if word == "redirectpermanent" else "302"
    if word in ("redirect", "redirectmatch") and args and (args[0].lower() in CODES or re.fullmatch(r"\d{3}", args[0])):
        code = CODES.get(args[0].lower(), args.pop(0) if args[0].isdigit() else "302")
        args = args[1:] if args and args[0].lower() in CODES else args
    if not args:
        server.report.skip(node, "a redirect has a path and a target")
        return
    path = args[0]
    pattern = expression(path) if word == "redirectmatch" else clean_prefix(path)
    if code[0] == "4":
        one = Scope(pattern, server.host.base, node, is_open=True)
        one.content = Content("respond", (("Status", code),), node)
        server.host.scopes.append(one)
        return
    uri = args[1] if len(args) > 1 else "/"
    if pattern == "/" and code in ("301", "302") and whole_host(server, uri, code):
        return
    one = Scope(pattern, server.host.base, node, is_open=True)
    if word == "redirectmatch":
        uri = uri.replace("$0", "$0")
        one.content = Content("redirect", (("To", uri), *(() if code == "301" else (("Status", code),))), node)
    else:
        target = Target("", "", False, "", True, True, None)
        content = make_redirect("/", uri.rstrip("/") or "/", target, code, node)
        rows = tuple(("To", uri.rstrip("/") or "/") if key == "To" else (key, text) for key, text in content.rows)
        one.content = Content("redirect", rows, node)
    server.host.scopes.append(one)


def whole_host(server, uri: str, code: str) -> bool:
    """`Redirect permanent / https://example.org/`: Redirect https, or Redirect of the host."""
    if not re.fullmatch(r"https?://[\w.:-]+/?", uri):
        return False
    name = re.sub(r"^https?://|/$", "", uri)
    if uri.startswith("https://") and name in server.host.names[:1] and not any("tls" in each for each in
                                                                            server.host.listens):
        if len(server.host.names) == 1:
            server.host.base.values["to_https"] = True
            return True
        server.host.set_key("Redirect", uri.rstrip("/"))
        server.host.base.values["moved"] = True
        return True
    if code == "302":
        return False
    server.host.set_key("Redirect", uri.rstrip("/"))
    server.host.base.values["moved"] = True
    return True


def add_condition(server, node, scope, value):
    server.conditions.append(node)


def add_rule(server, node, scope, value):
    server.rewrites.append((server.conditions, node, scope))
    server.conditions = []


def set_fallback(server, node, scope, value):
    if value.lower() == "disabled" or scope.pattern != "/":
        server.report.skip(node, "TryFiles is for the whole host")
    else:
        server.host.set_key("TryFiles", f"$path $path/ {value}")


def set_handler(server, node, scope, value):
    if value.lower() in ("none", "default-handler"):
        server.report.drop(node, "files are sent")
    elif value.lower() == "server-status":
        server.report.skip(node, "write [STATUS]")
    else:
        convert_handler(server, node, scope, value)


WORDS = {
    "servername": set_names, "serveralias": set_names, "documentroot": set_root, "directoryindex": set_index,
    "options": set_options, "allowoverride": set_override, "alias": add_alias, "scriptalias": add_scripts,
    "errordocument": set_error_page, "header": set_header, "requestheader": set_request_header,
    "expiresdefault": set_expires, "expiresbytype": set_expires, "addoutputfilterbytype": set_filter,
    "setoutputfilter": set_filter, "customlog": set_log, "transferlog": set_log, "errorlog": set_error_log,
    "limitrequestbody": set_limit, "sslengine": set_ssl, "sslprotocol": set_protocols, "sslverifyclient": set_verify,
    "sslverifydepth": set_depth, "redirect": add_redirect, "redirectmatch": add_redirect,
    "redirectpermanent": add_redirect, "redirecttemp": add_redirect, "rewritecond": add_condition,
    "rewriterule": add_rule, "fallbackresource": set_fallback, "sethandler": set_handler, "authtype": set_type,
    "authname": set_value("realm"), "authuserfile": set_value("auth_file"), "authgroupfile": set_value("auth_groups"),
    "satisfy": set_value("satisfy"),
}
