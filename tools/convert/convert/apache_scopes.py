# SPDX-License-Identifier: Apache-2.0
"""Directives of a host of Apache, and of its sections for folders, paths and files: one function for each word."""

import os
import re

from .apache_proxy import (add_member, convert_handler, convert_pass, convert_pass_match, set_proxy_option)
from .apache_rewrite import convert_rewrites
from .apache_words import CODES, GLOBS, STANDARD_HEADERS, TLS_ROWS, UNKNOWN, UNNEEDED, VERIFY
from .model import Config, Content, Host, Scope
from .patterns import clean_prefix, expression, is_prefix, within
from .report import Node, Report
from .targets import Target, make_redirect
from .units import size, strict_transport, write_seconds

LOCAL = "127.0.0.0/8 ::1"
EXPIRES = re.compile(r"(?:access|now|modification)\s+(?:plus\s+)?(.*)", re.I)
UNITS = {"year": 31536000, "month": 2592000, "week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}


class Server:
    """A host while it is converted."""

    def __init__(self, host: Host, config: Config, report: Report):
        self.host, self.config, self.report = host, config, report
        self.rewrites: list = []  # (conditions, rule, scope)
        self.conditions: list = []
        self.groups: dict = {}  # of balancers: name: (servers, rows)
        self.handled: list = []  # scopes of ProxyPass, in their order

    def root(self) -> str:
        return self.host.key("DocumentRoot")


def convert_nodes(server: Server, nodes: list, scope: Scope) -> None:
    first = ("documentroot", "servername", "serveralias", "alias", "define", "proxypreservehost", "authtype", "proxy",
             "authname", "authuserfile", "proxytimeout", "sslproxyverify")
    for node in sorted(nodes, key=lambda each: each.word.lower() not in first):
        word = node.word.lower()
        if word in SECTIONS and node.block is not None:
            SECTIONS[word](server, node, scope)
        elif word in WORDS and node.block is None:
            WORDS[word](server, node, scope, node.args[0] if node.args else "")
        elif word in TLS_ROWS and node.args:
            server.host.tls.append((TLS_ROWS[word], node.args[0]))
        elif word in UNNEEDED:
            server.report.drop(Node(node.word, [], node.place), UNNEEDED[word])
        else:
            server.report.skip(node, UNKNOWN.get(word, "the word is not known here"))


# ── sections ──


def enter(server: Server, node: Node, outer: Scope, pattern: str) -> Scope:
    """A scope that comes before those of former sections, since later ones have precedence."""
    scope = Scope(pattern, server.host.base if outer.pattern == "/" else outer, node, is_open=True)
    convert_nodes(server, node.block, scope)
    scope.values["folder"] = outer.values.get("folder")
    finish_requirements(server, scope)
    server.host.scopes.insert(0, scope)
    return scope


def enter_directory(server, node, outer):
    folder = node.args[-1].rstrip("/") or "/" if node.args else "/"
    if node.args[:1] == ["~"] or node.word.lower() == "directorymatch" or any(c in folder for c in "*?["):
        server.report.skip(node, "a section is for paths: a pattern of folders has none")
        return
    root = server.root().rstrip("/")
    aliases = {dict(scope.content.rows).get("To"): scope.pattern for scope in server.host.scopes
               if scope.content and scope.content.kind == "files" and scope.content.rows}
    aliases.update(server.host.base.values.get("scripts", {}))
    path = next((pattern + folder[len(to):] for to, pattern in aliases.items()
                 if to and (folder == to or folder.startswith(to + "/"))), None)
    if path is None and root and (folder == root or folder.startswith(root + "/")):
        path = folder[len(root):] or "/"
    elif path is None and root and (root.startswith(folder.rstrip("/") + "/")):
        path = "/"
    if path is None:
        if is_granted_only(node):
            server.report.drop(Node(f"{node.word} {folder}", [], node.place), "no path of this host leads to the folder")
        else:
            server.report.skip(node, "no path of this host leads to the folder")
        return
    if path == "/":
        server.host.base.values["folder"] = True
        convert_nodes(server, node.block, server.host.base)
        finish_requirements(server, server.host.base)
        server.host.base.values["folder"] = None
    else:
        enter(server, node, outer, path)


def is_granted_only(node: Node) -> bool:
    return all(each.word.lower() in ("require", "options", "allowoverride", "order", "allow", "satisfy")
               for each in node.block)


def enter_location(server, node, outer):
    args = node.args
    if node.word.lower() == "locationmatch" or args[:1] == ["~"]:
        pattern = expression(args[-1] if args else "/")
    else:
        pattern = clean_prefix(args[0]) if args and args[0].startswith("/") else "/"
        if any(c in pattern for c in "*?["):
            server.report.skip(node, "write a LocationMatch as an expression")
            return
    if pattern == "/":
        convert_nodes(server, node.block, server.host.base)
        finish_requirements(server, server.host.base)
    elif pattern in ("/server-status", "/server-info"):
        server.config.sections.append(("STATUS", (("Enabled", "On"), ("StatusPath", pattern))))
        server.report.note(node, "the status is JSON, for this machine alone")
    else:
        enter(server, node, outer, pattern)


def enter_files(server, node, outer):
    args = node.args
    if node.word.lower() == "filesmatch" or args[:1] == ["~"]:
        text = args[-1] if args else ""
        ignore = text.startswith("(?i)")
        text = text.removeprefix("(?i)")
        text = "/" + text[1:] if text.startswith("^") else text
        text = re.sub(r"^\.\+", "", text)
        pattern = expression(text.replace("^", "/") if "^" in text else text, ignore)
    else:
        name = args[0] if args else "*"
        pattern = name if re.fullmatch(r"\*\.[\w.-]+", name) else expression("/" + re.escape(name) + "$")
    if re.fullmatch(r"~\*?/\(?\??:?\\\.(?:ht.*|.*)", pattern) and all(each.word.lower() in (
            "require", "order", "deny", "allow", "satisfy") for each in node.block):
        server.report.drop(Node(node.text(), [], node.place), "names that begin with a dot are 404")
        return
    enter(server, node, outer, within(outer.pattern if is_prefix(outer.pattern) else "/", pattern))


def enter_requirements(server, node, scope):
    kind = node.word.lower()
    for each in node.block:
        if each.word.lower() in ("requireany", "requireall", "requirenone") and each.block is not None:
            enter_requirements(server, each, scope)
        elif each.word.lower() == "require":
            if kind == "requirenone":
                each.args.insert(0, "not")
            require(server, each, scope, each.args[0] if each.args else "")
        else:
            server.report.skip(each, "the word is not known here")
    scope.values["all"] = kind == "requireall"


def enter_proxy(server, node, scope):
    name = node.args[0] if node.args else "*"
    if name.startswith("balancer://"):
        for each in node.block:
            add_member(server, each, name)
    elif all(each.word.lower() in ("order", "allow", "require") for each in node.block):
        server.report.drop(Node("Proxy", [], node.place), "requests for other hosts are never passed on")
    else:
        server.report.skip(node, "options of a backend are keys of [PROXY]")


# ── access ──


def require(server, node, scope, value):
    words = [arg.lower() for arg in node.args]
    negated = words[:1] == ["not"]
    words, args = words[negated:], node.args[negated:]
    rules = scope.values.setdefault("requirements", [])
    if words == ["all", "granted"]:
        rules.append("granted")
    elif words == ["all", "denied"]:
        rules.append("denied")
    elif words[:1] == ["ip"]:
        rules.append(("deny" if negated else "allow", " ".join(full_network(arg) for arg in args[1:])))
    elif words == ["local"]:
        rules.append(("deny" if negated else "allow", LOCAL))
    elif words[:1] == ["valid-user"]:
        scope.values.setdefault("users", [])
    elif words[:1] in (["user"], ["group"]) and not negated:
        scope.values.setdefault("users", []).append(("Require", " ".join([words[0], *args[1:]])))
    else:
        server.report.skip(node, "[RULES] has networks, and [AUTH] users and groups")
        rules.append("denied")


def full_network(text: str) -> str:
    """`10.1` as `10.1.0.0/16`."""
    parts = text.rstrip(".").split(".")
    if ":" in text or "/" in text or len(parts) == 4:
        return text
    return ".".join(parts + ["0"] * (4 - len(parts))) + f"/{8 * len(parts)}"


def allow_or_deny(server, node, scope, value):
    """Of Apache 2.2: Order, Allow from, Deny from."""
    rules = scope.values.setdefault("requirements", [])
    word = node.word.lower()
    if word == "order":
        scope.values["order"] = value.lower()
        return
    names = [arg for arg in node.args if arg.lower() != "from"]
    if [name.lower() for name in names] == ["all"]:
        if not (word == "deny" and scope.values.get("order") == "deny,allow" and any(
                isinstance(rule, tuple) for rule in rules)):
            rules.append("granted" if word == "allow" else "denied")
    elif all(re.fullmatch(r"[\d.:/a-fA-F]+", name) for name in names):
        rules.append((word, " ".join(full_network(name) for name in names)))
    else:
        server.report.skip(node, "[RULES] has networks, no names")


def finish_requirements(server: Server, scope: Scope) -> None:
    """Rules and logins of what Require, Allow and Deny have said."""
    rules = scope.values.pop("requirements", None)
    networks = [rule for rule in rules or () if isinstance(rule, tuple)]
    if rules is not None:
        made = [(("Network", text), ("Action", action)) for action, text in
                sorted(networks, key=lambda rule: rule[0] != "deny")]
        if any(action == "allow" for action, _ in networks) or ("denied" in rules and "granted" not in rules):
            made.append((("Action", "deny"),))
        scope.rules = made
    users = scope.values.pop("users", None)
    if users is None:
        if rules and "granted" in rules and scope is not server.host.base and scope.pattern != "/":
            scope.settings["auth"] = ()
        return
    file = scope.value("auth_file")
    if not file:
        server.report.skip(scope.node, "a login needs AuthUserFile: write [AUTH] with Users")
        scope.rules = [(("Action", "deny"),)]
        return
    rows = [("Realm", scope.value("realm"))] if scope.value("realm") else []
    rows.append(("Users", file))
    if scope.value("auth_groups"):
        rows.append(("Groups", scope.value("auth_groups")))
    if any(action == "allow" for action, _ in networks) and not scope.values.get("all") or \
            scope.value("satisfy") == "any":
        users = [*users, ("Satisfy", "any")]
    scope.settings["auth"] = (*rows, *users)


# ── words ──


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
    from .writer import quote

    page = " ".join(node.args[1:])
    if page.startswith(("http://", "https://")):
        server.report.skip(node, "an error page is a file or a text")
    elif page.startswith("/") and server.root() or page and not page.startswith("/"):
        row = (value, page if page.startswith("/") else quote(page))
        scope.settings["errors"] = (*(scope.settings.get("errors") or ()), row)
    else:
        server.report.skip(node, "an error page is below the document root")


def set_header(server, node, scope, value):
    from .writer import quote

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
    from .writer import quote

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


def whole_host(server: Server, uri: str, code: str) -> bool:
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


SECTIONS = {
    "directory": enter_directory, "directorymatch": enter_directory, "location": enter_location,
    "locationmatch": enter_location, "files": enter_files, "filesmatch": enter_files, "proxy": enter_proxy,
    "requireany": enter_requirements, "requireall": enter_requirements, "requirenone": enter_requirements,
}
WORDS = {
    "servername": set_names, "serveralias": set_names, "documentroot": set_root, "directoryindex": set_index,
    "options": set_options, "allowoverride": set_override, "alias": add_alias, "scriptalias": add_scripts,
    "errordocument": set_error_page, "header": set_header, "requestheader": set_request_header,
    "expiresdefault": set_expires, "expiresbytype": set_expires, "addoutputfilterbytype": set_filter,
    "setoutputfilter": set_filter, "customlog": set_log, "transferlog": set_log, "errorlog": set_error_log,
    "loglevel": lambda server, node, scope, value: server.report.drop(node, "LogLevel of [SERVER] is info"),
    "limitrequestbody": set_limit, "sslengine": set_ssl, "sslprotocol": set_protocols, "sslverifyclient": set_verify,
    "sslverifydepth": set_depth, "redirect": add_redirect, "redirectmatch": add_redirect,
    "redirectpermanent": add_redirect, "redirecttemp": add_redirect, "rewritecond": add_condition,
    "rewriterule": add_rule, "fallbackresource": set_fallback, "sethandler": set_handler, "require": require,
    "order": allow_or_deny, "allow": allow_or_deny, "deny": allow_or_deny, "authtype": set_type,
    "authname": set_value("realm"), "authuserfile": set_value("auth_file"), "authgroupfile": set_value("auth_groups"),
    "satisfy": set_value("satisfy"), "proxypass": convert_pass, "proxypassmatch": convert_pass_match,
    "proxypreservehost": set_proxy_option, "proxytimeout": set_proxy_option, "proxyerroroverride": set_proxy_option,
    "sslproxyverify": set_proxy_option, "proxyioBuffersize": set_proxy_option,
}


def finish_server(server: Server) -> None:
    host = server.host
    finish_requirements(server, host.base)
    convert_rewrites(server)
    host.scopes = sorted([*server.handled, *host.scopes], key=lambda scope: not scope.is_redirected())
    if host.key("Redirect"):  # nothing else is reached
        host.keys = [row for row in host.keys if row[0] == "Redirect"]


