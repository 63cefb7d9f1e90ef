# SPDX-License-Identifier: Apache-2.0
"""What nginx answers with: return, rewrite, if, try_files, and backends."""

import re

from .model import Content, Host, Scope
from .nginx_context import Context, has_variable, is_plain, skip_unknown
from .nginx_settings import convert_setting
from .patterns import expression, is_prefix
from .report import Node
from .targets import Target, make_redirect, read_target
from .writer import quote

STATUSES = ("301", "302", "303", "307", "308")
FRONT = re.compile(r"(/[\w./-]*\.php)(?:\?.*|\$is_args\$args)?")
FLAGS = {"permanent": "301", "redirect": "302"}


# ── return ──


def convert_return(context: Context, host: Host, scope: Scope, node: Node) -> None:
    if scope.content is not None:
        context.drop(node, "what comes before it answers all requests")
        return
    code, text = (node.args + ["", ""])[:2]
    if len(node.args) == 1 and not code.isdigit():
        code, text = "302", code
    if scope is host.base and code[:1] in "45" and host.base.values.get("to_https"):
        context.drop(node, "all names of the host are redirected")
    elif code in STATUSES:
        redirect(context, host, scope, node, code, text)
    elif code == "444":
        scope.rules = [(("Action", "drop"),)]
        if scope is host.base:
            scope.content = Content("respond", (("Status", "403"),), node)
    elif has_variable(text) is not None:
        context.skip(node, f"a text cannot have ${has_variable(text)}")
    elif code.isdigit() and 200 <= int(code) <= 599:
        respond(context, scope, node, code, text)
    else:
        context.skip(node, f"{code} is no status of [RESPOND]")


def respond(context: Context, scope: Scope, node: Node, code: str, text: str) -> None:
    scope.content = Content("respond", make_answer(context, node, code, text, scope.value("default_type")), node)


def make_answer(context: Context, node: Node, code: str, text: str, media_type) -> tuple:
    rows = [("Status", code)] if code != "200" or not text else []
    if text.endswith("\n"):
        context.note(node, "the text has no line feed at its end")
        text = text.rstrip("\n")
    if "\n" in text:
        context.skip(node, "a text of several lines is a file: write File in [RESPOND]")
    elif text and code not in ("204", "205", "304"):
        rows.append(("Text", quote(text)))
        if media_type and media_type != "text/plain":
            rows.append(("Header", f"Content-Type {quote(media_type)}"))
    return tuple(rows)


def redirect(context: Context, host: Host, scope: Scope, node: Node, code: str, text: str) -> None:
    """A redirect: `Redirect https`, `Redirect URI` of the host, or a section."""
    target = read_target(text, "$scheme", ("$host", "$http_host", "$server_name"), ("$request_uri", "$uri"))
    if target.unknown:
        context.skip(node, f"a target cannot have ${target.unknown}")
        return
    if is_to_https(target) and scope.pattern == "/":
        host.base.values["to_https"] = True
        if scope is not host.base:
            scope.values["is_base"] = True
            note_challenge(context, host)
        return
    uri = absolute(target, host)
    if target.whole and not target.path and scope.pattern == "/" and code == "301" and uri.startswith("http") and \
            not [each for each in host.base.values.get("all_scopes", ()) if each is not scope]:
        host.set_key("Redirect", uri)
        scope.content = Content("respond", (("Status", "404"),)) if not host.key("Redirect") else None
        host.base.values["moved"] = True
        if scope is not host.base:
            scope.values["is_base"] = True
        return
    scope.content = make_redirect(scope.pattern, uri, target, code, node)


def note_challenge(context: Context, host: Host) -> None:
    for scope in host.base.values.get("all_scopes", ()):
        if "/.well-known" in scope.pattern:
            context.note(scope.node, "these paths are redirected to https, too, which certificate authorities follow")
            scope.values["is_base"] = True


def is_to_https(target: Target) -> bool:
    return target.scheme == "https" and target.own_host and target.whole and not target.path


def absolute(target: Target, host: Host) -> str:
    """The target as a path of this host, or as a URI."""
    if not target.authority or (target.own_host and target.scheme in ("", "$scheme")):
        return target.path or "/"
    scheme = target.scheme
    if scheme in ("", "$scheme"):
        scheme = "https" if any("tls" in listen for listen in host.listens) else "http"
    name = host.names[0] if target.own_host and host.names else target.authority
    return f"{scheme}://{name}{target.path}"


# ── rewrite ──


def convert_rewrite(context: Context, host: Host, scope: Scope, node: Node) -> None:
    if len(node.args) < 2:
        context.skip(node, "a rewrite has an expression and a path")
        return
    pattern, text, *flags = node.args
    flag = flags[0] if flags else ""
    target = read_target(text.removesuffix("?"), "$scheme", ("$host", "$http_host", "$server_name"), ("$request_uri",))
    drops_query = text.endswith("?")
    text = re.sub(r"\?\$(?:args|query_string)$|\$is_args\$args$", "", text.removesuffix("?"))
    if flag in FLAGS or text.startswith(("http://", "https://", "$scheme")):
        if target.unknown or target.whole and not drops_query:
            context.skip(node, f"a target cannot have ${target.unknown or 'request_uri'}")
            return
        rows = [("To", absolute(target, host))]
        if target.whole:  # rewrite ^ https://example.org$request_uri?
            redirect(context, host, scope, node, FLAGS.get(flag, "302"), text)
            return
        if FLAGS.get(flag, "302") != "301":
            rows.append(("Status", FLAGS.get(flag, "302")))
        if drops_query:
            rows.append(("KeepPath", "Off"))
        host.sections.append(("REDIRECT", (("Match", expression(pattern)), *rows)))
        return
    gateway = scope.values.get("proxy_pass")
    if gateway is not None and flag == "break" and is_strip(scope.pattern, pattern, text):
        scope.values["strip"] = True
        return
    if has_variable(text) is not None:
        context.skip(node, f"a path cannot have ${has_variable(text)}")
    elif gateway is not None and flag == "break":
        context.skip(node, "a path that a backend alone gets is the prefix of To in [PROXY], or StripPrefix On")
    elif FRONT.fullmatch(text) and scope.pattern == "/" and pattern in ("^", "^(.*)$", "^/(.*)$", ".*") and \
            scope is not host.base:
        set_try_files(context, host, node, ["$uri", "$uri/", text])
    else:
        rows = [("Match", expression(pattern)), ("To", text)]
        if drops_query:
            rows.append(("KeepQuery", "Off"))
        if flag == "break":
            rows.append(("Last", "On"))
        host.sections.append(("REWRITE", tuple(rows)))


def is_strip(prefix: str, pattern: str, text: str) -> bool:
    """Whether a rewrite removes the prefix of its location: `rewrite ^/api/(.*)$ /$1 break`."""
    escaped = re.escape(prefix.rstrip("/"))
    forms = (f"^{escaped}/(.*)$", f"^{escaped}/(.*)", f"^{escaped}(/.*)$", f"^{escaped}/?(.*)$", f"^{escaped}(.*)$",
             f"{escaped}/(.*)", f"{escaped}/(.*)$", f"^{escaped}(/|$)(.*)", f"^{escaped}(/|$)(.*)$")
    return pattern in forms and text in ("/$1", "$1", "/$2", "$2")


# ── if ──

IF_SCHEME = re.compile(r"\$(?:scheme|https|http_x_forwarded_proto|server_port)\s+(=|!=|~)\s*\"?(\w*)\"?")
IF_HOST = re.compile(r"\$(?:host|http_host|server_name)\s*(=|~\*?)\s*(\S+)")
IF_METHOD = re.compile(r"\$request_method\s*(=|!=|~\*?|!~\*?)\s*(\S+)")
IF_HEADER = re.compile(r"\$http_(\w+)\s*(~\*?|=)\s*(.+)")
IF_FILE = re.compile(r"(!?-[fed])\s*(\S+)")
IF_QUERY = re.compile(r"\$arg_(\w+)(?:\s*(=|~\*?)\s*(.+))?")


def convert_if(context: Context, host: Host, scope: Scope, node: Node) -> None:
    text = " ".join(node.args).strip()
    condition = text[1:-1].strip() if text.startswith("(") and text.endswith(")") else text
    action = node.block[0] if node.block and len(node.block) == 1 else None
    for form, convert in IFS:
        match = form.fullmatch(condition)
        if match and action is not None and convert(context, host, scope, action, match):
            return
    context.skip(node, "of conditions those of When in [RULES], [REDIRECT] and [RESPOND] are possible, for methods, "
                 "parameters and headers")


def is_redirect(action: Node) -> bool:
    return action.word == "return" and action.args[:1] and action.args[0] in STATUSES and len(action.args) == 2


def if_scheme(context, host, scope, action, match) -> bool:
    insecure = match[2] in ("http", "80", "") if match[1] != "!=" else match[2] in ("https", "on", "443")
    text = action.args[-1] if action.args else ""
    if not insecure or scope.pattern != "/" or not re.match(r"https://\$(?:host|server_name|http_host)\$request_uri|"
                                                            r"https://[\w.-]+\$request_uri", text):
        return False
    host.https_only = True
    return True


def if_host(context, host, scope, action, match) -> bool:
    """`if ($host = www.example.org) { return 301 https://example.org$request_uri; }` is a host, or Redirect https."""
    names = [match[2].strip("\"'")] if match[1] == "=" else names_of(match[2])
    if not names or not is_redirect(action) or scope is not host.base:
        return False
    target = read_target(action.args[1], "$scheme", ("$host", "$http_host"), ("$request_uri", "$uri"))
    if target.unknown or not target.whole or target.path:
        return False
    if is_to_https(target) or (target.scheme == "https" and [target.authority] == names):
        host.base.values.setdefault("https_names", []).extend(names)
        if set(host.names) <= set(host.base.values["https_names"]):
            host.base.values["to_https"] = True
        return True
    if target.own_host:
        return False
    other = Host(names, action.place, listens=host.listens, base=Scope(node=action))
    other.set_key("Redirect", absolute(target, host))
    other.base.values["moved"] = True
    host.names = [name for name in host.names if name not in names]
    context.config.hosts.append(other)
    return True


def names_of(text: str) -> list:
    """The names of `^www\\.(example\\.org)$` without expressions in them."""
    text = text.strip("\"'").removeprefix("^").removesuffix("$").replace("\\.", ".").replace("(", "").replace(")", "")
    return [text] if re.fullmatch(r"[\w.-]+", text) else []


def if_method(context, host, scope, action, match) -> bool:
    methods = match[2].strip("\"'").removeprefix("^").removesuffix("$").removeprefix("(").removesuffix(")").split("|")
    if not all(re.fullmatch(r"[A-Z]+", method) for method in methods):
        return False
    return refuse(host, scope, action, f"{'!' if match[1].startswith('!') else ''}method {' '.join(methods)}")


def if_header(context, host, scope, action, match) -> bool:
    name = "-".join(part.capitalize() for part in match[1].split("_"))
    value = match[3].strip().strip("\"'")
    if match[1] == "host":
        return False
    if match[2] == "=":
        value = f"~^{re.escape(value)}$" if value else ""
        return refuse(host, scope, action, f"header {name} {value}" if value else f"!header {name}")
    return refuse(host, scope, action, f"header {name} {expression(value, match[2] == '~*')}")


def if_query(context, host, scope, action, match) -> bool:
    value = (match[3] or "").strip().strip("\"'")
    return refuse(host, scope, action, f"query {match[1]}" + (f" ={value}" if match[2] == "=" else "" if not match[2]
                                                              else f" {expression(value, match[2] == '~*')}"))


def refuse(host: Host, scope: Scope, action: Node, condition: str) -> bool:
    """A status for requests with a condition."""
    if action.word != "return" or len(action.args) != 1 or not action.args[0].isdigit():
        return False
    match = (("Match", scope.pattern),) if scope.pattern != "/" else ()
    code = action.args[0]
    if code in ("405", "200", "204"):
        host.sections.append(("RESPOND", (*match, ("When", condition), ("Status", code))))
    else:
        what = "drop" if code == "444" else "deny" if code == "403" else f"deny {code}"
        host.sections.append(("RULES", (*match, ("When", condition), ("Action", what))))
    return True


def if_file(context, host, scope, action, match) -> bool:
    test, path = match[1], match[2].strip("\"'")
    if test in ("!-e", "!-f") and path == "$request_filename" and action.word == "rewrite" and len(action.args) > 1:
        text = action.args[1]
        if FRONT.match(re.sub(r"\$\d+", "", text)) and scope.pattern == "/":
            set_try_files(context, host, action, ["$uri", "$uri/", FRONT.match(text)[1]])
            return True
    root = scope.value("root", "")
    if test == "-f" and action.word == "return" and action.args == ["503"] and root:
        host.sections.append(("MAINTENANCE", (("FlagFile", path.replace("$document_root", root)),)))
        return "$" not in path.replace("$document_root", "")
    return False


IFS = ((IF_SCHEME, if_scheme), (IF_HOST, if_host), (IF_METHOD, if_method), (IF_HEADER, if_header),
       (IF_FILE, if_file), (IF_QUERY, if_query))


# ── try_files ──


def convert_try_files(context: Context, host: Host, scope: Scope, node: Node) -> None:
    set_try_files(context, host, node, node.args, scope)


def set_try_files(context: Context, host: Host, node: Node, names: list, scope=None) -> None:
    scope = scope or host.base
    names = [re.sub(r"(\.php)/?\$(?:request_)?uri", r"\1", name) for name in names]  # it finds the path itself
    for name in names:
        query = name.partition("?")[2]
        if query and query not in ("$args", "$query_string"):
            context.note(node, f"the script has no parameters {query}: it finds the path in REQUEST_URI")
    names = [re.sub(r"\?.*$|\$is_args\$args$", "", name) for name in names]
    last = names[-1] if names else ""
    if "fastcgi_pass" in scope.values or (scope.pattern != "/" and last == "=404"):
        context.drop(node, "a script, or file, that does not exist is 404")
        return
    if scope.pattern != "/":
        if last.startswith("@") and is_prefix(scope.pattern) and use_named(context, host, scope, last):
            context.note(node, "all paths of this location are passed on: files are tried for / alone")
            return
        context.skip(node, "TryFiles is for the whole host")
        return
    if last.startswith("@"):
        if not use_named(context, host, scope, last):
            context.skip(node, f"there is no location {last} with a backend")
            return
        words = names[:-1] + ([scope.values.pop("front")] if "front" in scope.values else [])
    else:
        words = names
    made = [word.replace("$uri", "$path").replace("$request_uri", "$path") for word in words]
    unknown = next((word for word in made if re.sub(r"\$path", "", word).count("$") or word.count("$path") > 1), None)
    if unknown:
        context.skip(node, f"{unknown}: a name of TryFiles has $path, and no other variables")
    elif made == ["$path", "$path/", "=404"]:
        context.drop(node, "files and folders are tried, and 404 is the last status")
    else:
        host.set_key("TryFiles", " ".join(made))
        host.base.values["files_first"] = True


def use_named(context: Context, host: Host, scope: Scope, name: str) -> bool:
    """The backend of a named location becomes that of the scope; a front controller is left in its values."""
    node = context.named.get(name)
    if node is None:
        return False
    context.used_named.add(name)
    gateway = None
    for each in node.block or ():
        if each.word in ("proxy_pass", "fastcgi_pass", "scgi_pass"):
            gateway = each
        elif each.word == "rewrite" and len(each.args) > 1 and FRONT.match(re.sub(r"\$\d+", "", each.args[1])):
            scope.values["front"] = FRONT.match(re.sub(r"\$\d+", "", each.args[1]))[1]
        elif not convert_setting(context, scope, each):
            skip_unknown(context, each)
    if gateway is not None:
        make_gateway(context, host, scope, gateway)
    return gateway is not None or "front" in scope.values


# ── backends ──


def make_gateway(context: Context, host: Host, scope: Scope, node: Node) -> None:
    value = node.args[0] if node.args else ""
    if node.word == "proxy_pass":
        make_proxy(context, scope, node, value)
    else:
        make_fastcgi(context, scope, node, value)


def make_proxy(context: Context, scope: Scope, node: Node, value: str) -> None:
    value = re.sub(r"\$request_uri$|\$uri(\$is_args\$args)?$", "", value)
    match = re.fullmatch(r"(https?)://(unix:[^:]+|[^/:]+(?::\d+)?|\[[0-9a-fA-F:]+\](?::\d+)?)(:?)(/.*)?", value)
    if not match or "$" in value:
        context.skip(node, "To of [PROXY] is a URL without variables")
        return
    scheme, name, _, path = match.groups()
    rows, group = [], context.upstreams.get(name)
    if group is not None:
        name = use_group(context, name, group)
    to = name if name.startswith("unix:") else f"{scheme}://{name}"
    pattern = scope.pattern
    if path is not None and (is_prefix(pattern) and pattern != "/" or pattern[0] == "="):
        slashless = path.rstrip("/")
        if pattern[0] == "=":
            to = to + (path if path != "/" else "/")
        elif slashless:
            to += slashless if slashless != pattern else ""
        else:
            rows.append(("StripPrefix", "On"))
    elif path not in (None, "/"):
        to += path.rstrip("/")
    if scope.values.get("strip"):
        rows.append(("StripPrefix", "On"))
    header = scope.value("host_header")
    is_name = re.search(r"[a-z]", name.split(":")[0]) and not name.startswith(("unix:", "localhost")) and group is None
    if header and header not in ("Client", "Backend"):
        rows.append(("HostHeader", header))
    elif header == "Client" and scheme == "https":
        rows.append(("HostHeader", "Client"))
    elif header != "Client" and is_name and scheme == "http":
        rows.append(("HostHeader", "Backend"))
    settings = list(scope.get("proxy") or ())
    if scheme == "https" and "TlsVerify" not in dict(settings):
        context.note(node, "the certificate of the backend is verified; TlsVerify Off of [PROXY] accepts any")
    rows += [row for row in settings if row != ("TlsVerify", "On")] + list(scope.value("request_headers", ()))
    scope.content = Content("proxy", (("To", to), *rows), node)


def use_group(context: Context, name: str, group: tuple) -> str:
    """The name of a group, or the address of its one server."""
    if is_plain(group):
        return group[1][0]
    context.used_upstreams.add(name)
    return name


def make_fastcgi(context: Context, scope: Scope, node: Node, value: str) -> None:
    group = context.upstreams.get(value)
    if group is not None:
        value = use_group(context, value, group)
    if "$" in value:
        context.skip(node, "To of [FASTCGI] has no variables")
        return
    kind = "scgi" if node.word == "scgi_pass" else "fastcgi"
    rows = [("To", value)]
    if kind == "fastcgi" and is_prefix(scope.pattern) and scope.pattern != "/":
        rows.append(("Split", "Off"))
    root, there = scope.value("root"), scope.value("script_root")
    if there and root and there != root:
        rows.append(("RemoteRoot", there))
    scope.content = Content(kind, (*rows, *(scope.get("fastcgi") or ())), node)
