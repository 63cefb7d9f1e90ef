# SPDX-License-Identifier: Apache-2.0
"""Directives of a site of Caddy: matchers, and one function for each word."""

import re

from .caddy_matchers import networks_of, read_path, take_matcher
from .caddy_proxy import make_fastcgi, make_proxy
from .caddy_words import ORDER, UNKNOWN
from .model import Config, Content, Host, Scope
from .patterns import covers
from .report import Node, Report
from .targets import make_redirect, read_target
from .units import size, strict_transport
from .writer import quote

CODES = {"permanent": "301", "temporary": "302", "": "302"}
HOST_WORDS = ("{host}", "{http.request.host}", "{hostport}")


class Site:
    """A site while it is converted. `scope` is that of the block in which directives are."""

    def __init__(self, host: Host, config: Config, report: Report):
        self.host, self.config, self.report, self.matchers = host, config, report, {}
        self.order = 0  # of scopes: (rank of the directive, length of the path, number)
        self.found: list = []


def convert_site(host: Host, nodes: list, config: Config, report: Report) -> None:
    site = Site(host, config, report)
    convert_block(site, nodes, host.base, "/", 0)
    site.found.sort(key=lambda entry: entry[0])
    host.scopes = [scope for _, scope in site.found]
    base = host.base.values
    has_files = base.get("files") or any(scope.content and scope.content.kind in ("files", "fastcgi")
                                         for scope in host.scopes)
    if base.get("root") and has_files:
        host.set_key("DocumentRoot", base["root"])
    elif not any(scope.content for scope in (*host.scopes, host.base)) and not host.key("Redirect"):
        host.base.content = Content("respond", (("Status", "200"),))
    if base.get("precompressed") and has_files:
        host.set_key("Precompressed", base["precompressed"])


def convert_block(site: Site, nodes: list, scope: Scope, within: str, rank: int) -> None:
    for node in nodes:
        if node.word.startswith("@"):
            site.matchers[node.word] = node
    ordered = sorted((node for node in nodes if not node.word.startswith("@")),
                     key=lambda node: ORDER.index(node.word) if node.word in ORDER else 0)
    for node in ordered:
        if node.word in DIRECTIVES:
            DIRECTIVES[node.word](site, node, scope, within, rank)
        else:
            site.report.skip(node, UNKNOWN.get(node.word, "the word is not known here"))


def add_scope(site: Site, word: str, pattern: str, outer: Scope, rank: int, node: Node, is_open: bool = True) -> Scope:
    scope = Scope(pattern, outer, node, is_open=is_open)
    number = ORDER.index(word) if word in ORDER else 0
    number = ORDER.index("handle") if word in ("handle_path", "route") else number
    key = (rank or number, number, pattern == "/", -len(pattern.lstrip("=")), len(site.found))
    site.found.append((key, scope))
    return scope


def scopes_for(site, node, scope, within, rank):
    """The scopes of a setting: that of the block, or one for each pattern of the matcher. There are no conditions."""
    matched = take_matcher(site, node, within)
    if matched is None:
        return [], []
    patterns, conditions, args = matched
    if conditions:
        site.report.skip(node, "this section has no When")
        return [], []
    return [scope if pattern == within else add_scope(site, node.word, pattern, scope, rank, node)
            for pattern in patterns], args


# ── directives ──


def set_root(site, node, scope, within, rank):
    args = node.args[1:] if len(node.args) > 1 else node.args
    if len(node.args) > 1 and node.args[0] != "*":
        pattern = read_path(node.args[0])
        add_scope(site, "file_server", pattern, scope, rank, node).values["root"] = args[0]
    elif args and "{" not in args[0]:
        scope.values["root"] = args[0]
    else:
        site.report.skip(node, "the folder depends on the request")


def set_files(site, node, scope, within, rank):
    found, args = scopes_for(site, node, scope, within, rank)
    for one in found:
        if "browse" in args:
            one.settings["listing"] = (("Enabled", "On"),)
        for row in node.block or ():
            if row.word == "precompressed":
                site.host.base.values["precompressed"] = " ".join(row.args or ["br", "zstd", "gzip"])
            elif row.word == "index":
                site.host.set_key("Indexfile", " ".join(row.args))
            elif row.word == "root" and row.args:
                one.values["root"] = row.args[0]
            elif row.word == "hide":
                site.report.drop(row, "names with a dot in front are 404; Hidden of [DIRLISTING] hides others in lists")
            elif row.word == "browse":
                one.settings["listing"] = (("Enabled", "On"),)
            else:
                site.report.skip(row, "the option is not known here")
        root, base = one.value("root"), site.host.base.value("root")
        if not base and root and one.pattern == "/":
            site.host.base.values["root"] = base = root
        site.host.base.values["files"] = True
        rows = ()
        if root and root != base or within != "/" and one.values.get("strip", scope.values.get("strip")):
            path = "" if scope.values.get("strip") else one.pattern.lstrip("=")
            rows = (("To", (root or ".").rstrip("/") + path),)
        one.content = Content("files", rows, node)


def make_answer(site, node, scope, within, rank):
    matched = take_matcher(site, node, within)
    if matched is None:
        return
    patterns, conditions, args = matched
    text = next((arg for arg in args if not re.fullmatch(r"[2-5]\d\d", arg)), "")
    code = next((arg for arg in args if re.fullmatch(r"[2-5]\d\d", arg)), "200")
    for row in node.block or ():
        if row.word == "body" and row.args:
            text = row.args[0]
        elif row.word != "close":
            site.report.skip(row, "the option is not known here")
    if "{" in text and re.search(r"\{[a-z_.]+\}", text) or "\n" in text:
        site.report.skip(node, "a text of [RESPOND] is one line without variables")
        return
    rows = [("When", each) for each in conditions] + ([("Status", code)] if code != "200" or not text else [])
    if text and code not in ("204", "304"):
        rows.append(("Text", quote(text)))
        kind = "application/json" if re.match(r"^[\[{].*[]}]$", text) else "text/html" if text.startswith("<") else ""
        if kind:
            rows.append(("Header", f"Content-Type {kind}"))
    if node.word == "error":
        rows = rows[:1]
    for pattern in patterns:
        if conditions:
            match = (("Match", pattern),) if pattern != "/" else ()
            site.host.sections.append(("RESPOND", (*match, *rows)))
        else:
            one = scope if pattern == within and scope.content is None and scope.is_open is False and within != "/" \
                else add_scope(site, "respond", pattern, scope, rank, node)
            one.content = Content("respond", tuple(rows), node)


def make_abort(site, node, scope, within, rank):
    networks = networks_of(site, node)
    matched = None if networks else take_matcher(site, node, within)
    if networks:
        add_networks(site, networks, within, "drop")
    elif matched:
        for pattern in matched[0]:
            rows = [("Match", pattern)] * (pattern != "/") + [("When", each) for each in matched[1]]
            site.host.sections.append(("RULES", (*rows, ("Action", "drop"))))


def add_networks(site, networks, within, action):
    negated, text, paths = networks
    for pattern in paths or [within]:
        match = (("Match", pattern),) if pattern != "/" else ()
        if negated:
            site.host.sections.append(("RULES", (*match, ("Network", text), ("Action", "allow"))))
            site.host.sections.append(("RULES", (*match, ("Action", action))))
        else:
            site.host.sections.append(("RULES", (*match, ("Network", text), ("Action", action))))


def respond_or_refuse(site, node, scope, within, rank):
    networks = networks_of(site, node)
    codes = [arg for arg in node.args[1:] if re.fullmatch(r"4\d\d", arg)]
    if networks and codes:
        add_networks(site, networks, within, "deny" if codes[0] == "403" else f"deny {codes[0]}")
    else:
        make_answer(site, node, scope, within, rank)


def make_redirection(site, node, scope, within, rank):
    matched = take_matcher(site, node, within)
    if matched is None or not matched[2]:
        return
    patterns, conditions, args = matched
    code = CODES.get(args[1] if len(args) > 1 else "", args[1] if len(args) > 1 else "302")
    if code not in ("301", "302", "303", "307", "308"):
        site.report.skip(node, f"{code} is no status of a redirect")
        return
    target = read_target(args[0], "{scheme}", HOST_WORDS, ("{uri}", "{http.request.uri}"))
    if target.unknown:
        site.report.skip(node, f"a target cannot have {{{target.unknown}}}")
        return
    if patterns == ["/"] and target.scheme == "https" and target.own_host and target.whole and not target.path:
        site.host.https_only = True
        return
    scheme = target.scheme or ("https" if any(" tls" in each for each in site.host.listens) else "http")
    name = site.host.names[0] if target.own_host and site.host.names else target.authority
    uri = f"{scheme}://{name}{target.path}" if target.authority and not (target.own_host and not target.scheme) \
        else target.path or "/"
    if patterns == ["/"] and code == "301" and target.whole and not target.path and not conditions and \
            uri.startswith("http"):
        site.host.set_key("Redirect", uri)
        site.host.https_only = False
        return
    for pattern in patterns:
        content = make_redirect(pattern, uri, target, code, node)
        if conditions:
            rows = [("Match", pattern)] * (content.rows[0][0] != "Match") + list(content.rows)
            site.host.sections.append(("REDIRECT", (*rows, *(("When", each) for each in conditions))))
        else:
            add_scope(site, "redir", pattern, scope, 0, node).content = content


def make_rewrite(site, node, scope, within, rank):
    matched = take_matcher(site, node, within)
    if matched is None or not matched[2]:
        return
    patterns, conditions, args = matched
    text = args[0].removesuffix("?{query}")
    if "{" in text:
        site.report.skip(node, "To of [REWRITE] has no variables")
        return
    for pattern in patterns:
        rows = [("Match", pattern), ("To", text), *(("When", each) for each in conditions)]
        if not pattern.startswith("="):
            rows += [("KeepPath", "Off")] if not pattern.startswith("~") else []
            rows += [("Last", "On")] if covers(pattern, "=" + text) or pattern.startswith("~") else []
        site.host.sections.append(("REWRITE", tuple(rows)))


def set_try_files(site, node, scope, within, rank):
    if within != "/" and not scope.values.get("fallback"):
        site.report.skip(node, "TryFiles is for the whole host")
        return
    names = [re.sub(r"\?.*$", "", arg).replace("{path}", "$path").replace("{http.request.uri.path}", "$path")
             for arg in node.args if arg != "{http.request.uri.path}?{query}"]
    if any("{" in name for name in names):
        site.report.skip(node, "a name of TryFiles has $path, and no other variables")
        return
    names = [name if name.startswith(("/", "$", "=")) else "/" + name for name in names]
    if names and names[0] == "$path" and "$path/" not in names and "$" not in names[-1]:
        names.insert(1, "$path/")
    site.host.set_key("TryFiles", " ".join(names))
    site.host.base.values["files_first"] = True


def set_login(site, node, scope, within, rank):
    found, args = scopes_for(site, node, scope, within, rank)
    users = [f"{row.word}:{row.args[0]}" for row in node.block or () if row.args]
    if not users or any(not user.partition(":")[2].startswith("$2") for user in users):
        site.report.skip(node, "users have a name and a hash of bcrypt: mk_passwd writes a file for Login")
        users = users or ["-"]
    files = site.config.users
    name = next((name for name, rows in files.items() if rows == users), None)
    if name is None:
        name = "caddy-users" + (f"-{len(files) + 1}" if files else "")
        files[name] = users
    site.report.note(node, f"the users are in the file {name}, next to this one, which -o writes: {' '.join(users)}")
    realm = [arg for arg in args if arg not in ("bcrypt", "argon2id")]
    for one in found:
        one.settings["auth"] = (*((("Realm", realm[-1]),) if realm else ()), ("Users", name))


def set_forward(site, node, scope, within, rank):
    found, args = scopes_for(site, node, scope, within, rank)
    to = args[0] if args else ""
    to = to if "://" in to else f"http://{to}"
    rows = []
    for row in node.block or ():
        if row.word == "uri" and row.args:
            to = to.rstrip("/") + row.args[0]
        elif row.word == "copy_headers":
            names = [*row.args, *(each.word for each in row.block or ())]
            rows.append(("CopyHeaders", " ".join(name.partition(">")[0] for name in names)))
        else:
            site.report.skip(row, "the option is not known here")
    for one in found:
        one.settings["auth"] = (("Type", "Forward"), ("To", to), *rows)


def set_headers(site, node, scope, within, rank):
    found, args = scopes_for(site, node, scope, within, rank)
    rows = [Node(row.word, row.args, row.place) for row in node.block or ()]
    if args:
        rows.append(Node(args[0], args[1:], node.place))
    for row in rows:
        name, value = row.word, row.args[0] if row.args else ""
        key = {"+": "Add", "-": "Remove"}.get(name[:1], "Set")
        if name.startswith("?"):
            site.report.note(row, "the header replaces one of a backend, too")
        name = name.lstrip("+-?>")
        if name == "defer":
            continue
        if key == "Remove" and name.lower() == "server":
            site.config.set_server("ServerHeader", "Off")
        elif "{" in value or len(row.args) > 1:
            site.report.skip(row, "the value of a header has no variables, and replaces no part of it")
        elif name.lower() == "strict-transport-security" and strict_transport(value) and scope is site.host.base and \
                found == [scope]:
            site.host.tls.append(("StrictTransportSecurity", strict_transport(value)))
        elif name.lower() in ("server", "alt-svc", "date"):
            site.report.skip(row, f"the server itself sets {name}")
        else:
            for one in found:
                one.add_header(key, name if key != "Remove" else "", quote(value) if key != "Remove" else name, True)


def set_encode(site, node, scope, within, rank):
    found, args = scopes_for(site, node, scope, within, rank)
    rows = [("On", "On")]
    for row in node.block or ():
        if row.word == "minimum_length" and row.args and size(row.args[0]):
            rows.append(("MinSize", size(row.args[0])))
        elif row.word not in ("gzip", "zstd", "br", "match"):
            site.report.skip(row, "the option is not known here")
        elif row.word == "match":
            site.report.drop(row, "text is compressed by its type; Types of [COMPRESS] says which")
    for one in found:
        one.settings["compress"] = tuple(rows)


def set_body(site, node, scope, within, rank):
    found, _ = scopes_for(site, node, scope, within, rank)
    for row in node.block or ():
        if row.word == "max_size" and row.args and size(row.args[0]):
            for one in found:
                one.add_rows("limits", ("MaxBodySize", size(row.args[0])))
        else:
            site.report.skip(row, "the option is not known here")


def set_tls(site, node, scope, within, rank):
    if len(node.args) == 2:
        site.host.tls += [("Certificate", node.args[0]), ("CertificateKey", node.args[1])]
    elif node.args == ["internal"]:
        site.host.base.values["internal"] = True
        site.report.note(node, "the certificate is self-signed, and made anew at each start")
    elif node.args:
        site.report.drop(Node("tls", [], node.place), "another program gets certificates")
    for row in node.block or ():
        if row.word == "protocols":
            if row.args[:1] == ["tls1.3"]:
                site.host.tls.append(("Profile", "modern"))
            else:
                site.report.drop(row, "TLS 1.2 and 1.3 are the default")
        elif row.word in ("dns", "ca", "issuer", "on_demand", "key_type", "resolvers", "alpn", "ciphers", "curves"):
            site.report.drop(Node(row.word, [], row.place), "another program gets certificates")
        else:
            site.report.skip(row, "the option is not known here")


def set_log(site, node, scope, within, rank):
    target, form = "stderr", "json"
    for row in node.block or ():
        if row.word == "output" and row.args:
            target = {"file": row.args[1] if len(row.args) > 1 else "", "stdout": "stdout", "stderr": "stderr",
                      "discard": "Off"}.get(row.args[0], "")
            for each in row.block or ():
                site.report.drop(Node(each.word, [], each.place),
                                 "logrotate renames logs, and SIGUSR1 opens them again")
        elif row.word == "format" and row.args:
            form = "json" if row.args[0] == "json" else "common"
        elif row.word == "level":
            site.report.drop(row, "all requests are logged; Status of [LOGGER] selects some")
        else:
            site.report.skip(row, "the option is not known here")
    if target:
        site.host.sections.append(("LOGGER", (("AccessLog", target), ("Format", form))))
    else:
        site.report.skip(node, "AccessLog is a file, stdout, stderr or syslog")


def set_bind(site, node, scope, within, rank):
    address = node.args[0] if node.args else ""
    if address.startswith("unix/"):
        site.report.skip(node, "write Listen unix:/PATH")
        return
    name = f"[{address}]" if ":" in address and not address.startswith("[") else address
    site.host.listens = [f"{name}:{each}" for each in site.host.listens]


def enter_handle(site, node, scope, within, rank):
    """handle, handle_path and route: the first handle that fits is used alone."""
    matched = take_matcher(site, node, within)
    if matched is None:
        return
    patterns, conditions, _ = matched
    if conditions:
        site.report.skip(node, "a section for files or a backend has no When")
        return
    for pattern in patterns:
        one = add_scope(site, node.word, pattern, scope, rank, node, is_open=node.word == "route")
        place = site.found[-1][0]
        one.values["fallback"] = pattern == "/"
        if node.word == "handle_path":
            one.values["strip"] = True
        before = len(site.found)
        convert_block(site, node.block or [], one, pattern, ORDER.index("handle"))
        for number in range(before, len(site.found)):  # inner scopes come before that of the block
            site.found[number] = ((*place[:-1], place[-1] - 1 + (number - before) / 1000), site.found[number][1])


def drop_strip(site, node, scope, within, rank):
    if node.args[:1] == ["strip_prefix"] and len(node.args) == 2 and node.args[1].rstrip("/") == within:
        scope.values["strip"] = True
    else:
        site.report.skip(node, UNKNOWN["uri"])


def pass_on(site, node, scope, within, rank):
    matched = take_matcher(site, node, within)
    if matched is None:
        return
    if matched[1]:
        site.report.skip(node, "[PROXY] has no When")
        return
    make = make_proxy if node.word == "reverse_proxy" else make_fastcgi
    for pattern in matched[0]:
        one = scope if pattern == within and within != "/" and scope.content is None else \
            add_scope(site, node.word, pattern, scope, rank, node)
        one.content = make(site, node, one, matched[2])


DIRECTIVES = {
    "root": set_root, "file_server": set_files, "respond": respond_or_refuse, "error": make_answer, "abort": make_abort,
    "redir": make_redirection, "rewrite": make_rewrite, "try_files": set_try_files, "basicauth": set_login,
    "basic_auth": set_login, "forward_auth": set_forward, "header": set_headers, "encode": set_encode,
    "request_body": set_body, "tls": set_tls, "log": set_log, "bind": set_bind, "handle": enter_handle,
    "handle_path": enter_handle, "route": enter_handle, "reverse_proxy": pass_on, "php_fastcgi": pass_on,
    "uri": drop_strip,
}
