# SPDX-License-Identifier: Apache-2.0
"""`monkey -t` on mistakes of many files at once: words of other servers, values, addresses and patterns. Each is
one error, with its place and a sentence that says what would be right."""

import os

import pytest

from harness import build
from harness.server import run, write_config
from test_mistakes import PLACE

SECTIONS = ("auth", "cgi", "compress", "cors", "fastcgi", "headers", "logger", "mandril", "redirect", "tls", "upstream")

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in SECTIONS),
        reason="this preset has not all plugins",
    ),
]

SERVER, HOST = "[SERVER]\n", "[HOST]\n    ServerName h{number}\n    DocumentRoot {root}\n"

# What follows the first section, or a whole file; line and column of the mistake, and the sentence.
ROWS = {
    "nginx: limit_req_zone": (
        SERVER, "    limit_req_zone $binary_remote_addr zone=one:10m rate=1r/s\n", 2, 5,
        'unknown key "limit_req_zone" in [SERVER]; write "Rate NUMBER/s" in [CLIENT_LIMITS], in a file '
        "of sites/",
    ),
    "nginx: limit_conn_zone": (
        SERVER, "    limit_conn_zone $binary_remote_addr zone=two:10m\n", 2, 5,
        'unknown key "limit_conn_zone" in [SERVER]; write "MaxRequests NUMBER" in [CLIENT_LIMITS], in a '
        "file of sites/",
    ),
    "nginx: auth_request": (
        HOST, "    auth_request /auth\n", 4, 5,
        'unknown key "auth_request" in [HOST]; write "Type Forward" in [AUTH], in a file of sites/',
    ),
    "nginx: charset": (
        HOST, "    charset utf-8\n", 4, 5,
        'unknown key "charset" in [HOST]; leave it out: texts are sent as UTF-8',
    ),
    "nginx: resolver": (
        SERVER, "    resolver 1.1.1.1\n", 2, 5,
        'unknown key "resolver" in [SERVER]; write "NameServer ADDRESS" in [UPSTREAM], in monkey.conf',
    ),
    "nginx: dav_methods": (
        HOST, "    dav_methods PUT DELETE\n", 4, 5,
        'unknown key "dav_methods" in [HOST]; there is no WebDAV: another server does that, behind '
        "[PROXY]",
    ),
    "nginx: an expression as a name": (
        HOST, "[HOST]\n    DocumentRoot {root}\n    ServerName ~^www\\.\n", 3, 16,
        'ServerName "~^www\\.": a name is no expression: write each name, or *.example.org for all below '
        "a domain",
    ),
    "nginx: a name and all below it": (
        HOST, "[HOST]\n    DocumentRoot {root}\n    ServerName .example.org\n", 3, 16,
        'ServerName ".example.org": all names below a domain are *.example.org, and the domain is a '
        "name, too: example.org *.example.org",
    ),
    "nginx: a prefix that is final": (
        HOST, "[PROXY]\n    Match ^~ /api\n    To http://127.0.0.1:1\n", 5, 11,
        '"Match": the path of a prefix begins with its slash: leave ^~ out',
    ),
    "nginx: a pattern in quotes": (
        HOST, "[HEADERS]\n    Match '/api'\n    Set X-A b\n", 5, 11,
        '"Match": single quotes become part of the pattern: leave them out',
    ),
    "nginx: always": (
        HOST, "[HEADERS]\n    Set X-A b always\n", 5, 9,
        '"Set": "always" becomes part of the value: leave it out, and write OnErrors On',
    ),
    "nginx: syslog": (
        HOST, "[LOGGER]\n    AccessLog syslog:server=unix:/dev/log\n", 5, 15,
        '"AccessLog": behind syslog: is the path of a socket, such as syslog:/dev/log',
    ),
    "nginx: max_fails": (
        SERVER, "[UPSTREAM]\n    Name a\n    Server 127.0.0.1:1\n    max_fails 3\n", 4, 5,
        '"max_fails" is not a key of [UPSTREAM] here; that is `EjectAfter`',
    ),
    "Apache: NameVirtualHost": (
        SERVER, "    NameVirtualHost *:80\n", 2, 5,
        'unknown key "NameVirtualHost" in [SERVER]; leave it out: each file of sites/ is a host',
    ),
    "Apache: SetHandler": (
        HOST, "    SetHandler proxy-server\n", 4, 5,
        'unknown key "SetHandler" in [HOST]; programs run in [CGI], or in [FASTCGI] and [SCGI] if they '
        "are servers",
    ),
    "Apache: SSLVerifyClient": (
        HOST, "    SSLVerifyClient require\n", 4, 5,
        'unknown key "SSLVerifyClient" in [HOST]; write "ClientCertificate Required" in [TLS], in a file '
        "of sites/",
    ),
    "HAProxy: bind": (SERVER, "    bind *:80\n", 2, 5, 'unknown key "bind" in [SERVER]; did you mean "Listen"?'),
    "HAProxy: default_backend": (
        HOST, "    default_backend app\n", 4, 5,
        'unknown key "default_backend" in [HOST]; write "Match /PATH" and "To http://GROUP" in [PROXY], '
        "in a file of sites/",
    ),
    "HAProxy: acl": (
        HOST, "    acl is_api path_beg /api\n", 4, 5,
        'unknown key "acl" in [HOST]; conditions are the line Match of [PROXY] and others, '
        "and Match, Network and When of [RULES]",
    ),
    "HAProxy: option": (
        HOST, "    option httplog\n", 4, 5,
        'unknown key "option" in [HOST]; write "AccessLog FILE" in [LOGGER], in a file of sites/',
    ),
    "HAProxy: a server with a name": (
        SERVER, "[UPSTREAM]\n    Name app\n    Server web1 10.0.0.1:80\n", 3, 12,
        '"Server": a line has one address, and no name before it: write a line for each server',
    ),
    "Caddy: log": (
        HOST, "    log\n", 4, 5,
        'unknown key "log" in [HOST]; write "AccessLog FILE" in [LOGGER], in a file of sites/',
    ),
    "Caddy: forward_auth": (
        HOST, "    forward_auth authelia:9091\n", 4, 5,
        'unknown key "forward_auth" in [HOST]; write "Type Forward" in [AUTH], in a file of sites/',
    ),
    "lighttpd: include_shell": (
        SERVER, '    include_shell "x"\n', 2, 5,
        'unknown key "include_shell" in [SERVER]; write @INCLUDE FILE at the start of a line',
    ),
    "a version of TLS": (
        HOST, "[TLS]\n    MinVersion TLSv1.2\n", 5, 5,
        'unknown key "MinVersion" in [TLS]; did you mean "Profile"?',
    ),
    "an IPv6 address without brackets": (
        SERVER, "    Listen ::1:8080\n", 2, 12,
        '"Listen": an IPv6 address needs brackets: [::1]:80',
    ),
    "all IPv6 addresses without a port": (
        SERVER, "    Listen ::\n", 2, 12,
        '"Listen": an IPv6 address needs brackets: [::1]:80',
    ),
    "a range of ports": (
        SERVER, "    Listen 8000-8010\n", 2, 12,
        '"Listen": a line has one port: write a line for each',
    ),
    "an address with tcp": (
        SERVER, "    Listen tcp://0.0.0.0:80\n", 2, 12,
        '"Listen": an address has no scheme: 127.0.0.1:80, [::1]:80 or *:80',
    ),
    "a socket without its word": (
        SERVER, "    Listen /run/monkey.sock\n", 2, 12,
        '"Listen": a socket\'s path begins with unix: unix:/run/monkey.sock',
    ),
    "enabled": (
        SERVER, "    KeepAlive enabled\n", 2, 15,
        '"KeepAlive" wants On or Off, not "enabled"; did you mean "On"?',
    ),
    "a user with its group": (
        SERVER, "    User www-data:www-data\n", 2, 10,
        '"User": there is no user "www-data:www-data": the group has its own line, Group',
    ),
    "a variable without braces": (
        HOST, "[HOST]\n    DocumentRoot $HOME/www\n    ServerName h{number}\n", 2, 18,
        '"DocumentRoot": a variable has braces: write ${HOME}/ or the whole path',
    ),
    "an index with commas": (
        HOST, "    Indexfile index.html,index.php\n", 4, 15,
        '"Indexfile": a blank separates names, not a comma',
    ),
    "an index with commas, for all hosts": (
        SERVER, "    Indexfile index.html, index.htm\n", 2, 15,
        '"Indexfile": a blank separates names, not a comma',
    ),
    "nginx: worker_connections": (
        SERVER, "    worker_connections 1024\n", 2, 5,
        'unknown key "worker_connections" in [SERVER]; did you mean "MaxConnections"?',
    ),
    "nginx: set_real_ip_from": (
        SERVER, "    set_real_ip_from 10.0.0.0/8\n", 2, 5,
        'unknown key "set_real_ip_from" in [SERVER]; did you mean "TrustedProxies"?',
    ),
    "nginx: stub_status": (
        HOST, "    stub_status\n", 4, 5,
        'unknown key "stub_status" in [HOST]; write "Enabled On" in [STATUS], in monkey.conf',
    ),
    "nginx: auth_basic_user_file": (
        HOST, "    auth_basic_user_file /etc/nginx/.htpasswd\n", 4, 5,
        'unknown key "auth_basic_user_file" in [HOST]; write "Users FILE" in [AUTH], in a file of sites/',
    ),
    "nginx: proxy_set_header": (
        HOST, "    proxy_set_header Host $host\n", 4, 5,
        'unknown key "proxy_set_header" in [HOST]; [PROXY] sends X-Forwarded-For and others by itself, '
        "and Host as HostHeader says",
    ),
    "nginx: least_conn": (
        SERVER, "[UPSTREAM]\n    Name b\n    Server 127.0.0.1:1\n    least_conn\n", 4, 5,
        '"least_conn" is not a key of [UPSTREAM] here; that is `Balance LeastLoaded`',
    ),
    "nginx: reuseport": (
        SERVER, "    Listen 8081 reuseport\n", 2, 17,
        '"Listen": leave the word out: Scheduler reuseport is the default',
    ),
    "nginx: quic": (SERVER, "    Listen 444 quic\n", 2, 16, '"Listen": there is no HTTP/3: leave the word out'),
    "Apache: Order": (
        HOST, "    Order allow,deny\n", 4, 5,
        'unknown key "Order" in [HOST]; write "Network NETWORK" and "Action deny" in [RULES], in a file '
        "of sites/",
    ),
    "Apache: Require": (
        HOST, "    Require all granted\n", 4, 5,
        'unknown key "Require" in [HOST]; networks are the section [RULES], users the section [AUTH]',
    ),
    "Apache: RewriteEngine": (
        HOST, "    RewriteEngine On\n", 4, 5,
        'unknown key "RewriteEngine" in [HOST]; leave it out: a section [REWRITE] or [REDIRECT] is enough',
    ),
    "Apache: ServerTokens": (
        SERVER, "    ServerTokens Prod\n", 2, 5,
        'unknown key "ServerTokens" in [SERVER]; write "HideVersion On" in [SERVER], in monkey.conf',
    ),
    "Apache: LimitRequestBody": (
        SERVER, "    LimitRequestBody 102400\n", 2, 5,
        'unknown key "LimitRequestBody" in [SERVER]; did you mean "MaxBodySize"?',
    ),
    "HAProxy: maxconn": (
        SERVER, "    maxconn 4096\n", 2, 5,
        'unknown key "maxconn" in [SERVER]; did you mean "MaxConnections"?',
    ),
    "Caddy: php_fastcgi": (
        HOST, "    php_fastcgi unix//run/php.sock\n", 4, 5,
        'unknown key "php_fastcgi" in [HOST]; write "PHP unix:/PATH"',
    ),
    "Caddy: redir": (
        HOST, "    redir https://example.org\n", 4, 5,
        'unknown key "redir" in [HOST]; write "Match PATH" and "To TARGET" in [REDIRECT], in a file of '
        "sites/",
    ),
    "lighttpd: url.redirect": (
        HOST, '    url.redirect = ( "a" => "b" )\n', 4, 5,
        'unknown key "url.redirect" in [HOST]; write "Match PATH" and "To TARGET" in [REDIRECT], in a '
        "file of sites/",
    ),
    "systemd: a section": (SERVER, "[Service]\n    ExecStart /usr/bin/x\n", 1, 1, "unknown section [Service]"),
    "a section in the singular": (
        HOST, "[HEADER]\n    Set A b\n", 4, 1,
        "unknown section [HEADER]; did you mean [HEADERS]?",
    ),
    "a port that is too large": (
        SERVER, "    Listen 70000\n", 2, 12,
        '"Listen": the port must be a number from 0 to 65535',
    ),
    "a port with a colon alone": (
        SERVER, "    Listen :8082\n", 2, 12,
        '"Listen": a port on all addresses has no colon: write "Listen 8082"',
    ),
    "a size below zero": (
        SERVER, "    MaxDiscardSize -1\n", 2, 20,
        '"MaxDiscardSize" wants a size, not "-1" (units: B, K, M, G)',
    ),
    "a size with a fraction": (
        SERVER, "    MaxDiscardSize 1.5M\n", 2, 20,
        '"MaxDiscardSize" wants a size, not "1.5M" (units: B, K, M, G)',
    ),
    "a level of syslog": (
        SERVER, "    LogLevel warning\n", 2, 14,
        '"LogLevel" wants one of error, warn, info, debug, not "warning"; did you mean "warn"?',
    ),
    "a user that is missing": (SERVER, "    User no-such-user\n", 2, 10, '"User": there is no user "no-such-user"'),
    "a network with bits behind it": (
        HOST, "[RULES]\n    Network 10.0.0.1/8\n    Action deny\n", 5, 13,
        '"Network": "10.0.0.1/8" names more than 8 bits; did you mean "10.0.0.0/8"?',
    ),
    "a mask": (
        HOST, "[RULES]\n    Network 10.0.0.0/255.0.0.0\n    Action deny\n", 5, 13,
        '"Network": "10.0.0.0/255.0.0.0": the number of bits is from 0 to 32',
    ),
    "a status alone": (
        HOST, "[RULES]\n    Match /x\n    Action 403\n", 6, 12,
        '"Action": an action is allow, deny, deny STATUS, drop or delay TIME',
    ),
    "codings with commas": (
        HOST, "[COMPRESS]\n    Codings gzip,br\n", 5, 13,
        '"Codings" takes zstd, br and gzip, each once at most, or none alone, not "gzip,br"',
    ),
    "types with semicolons": (
        HOST, "[COMPRESS]\n    Types text/html; application/json\n", 5, 11,
        '"text/html;" is not a media type: write text/html, text/* for all texts, or *+json for all that '
        "end with it",
    ),
    "a header without a value": (HOST, "[HEADERS]\n    Set X-A\n", 5, 9, '"Set": a header needs a name and a value'),
    "a header in quotes": (
        HOST, '[HEADERS]\n    Set "X-A: b"\n', 5, 10,
        '"Set": a blank separates name and value, not a colon: write "Set X-A b"',
    ),
    "a status before the target": (
        HOST, "[REDIRECT]\n    Match /a\n    To 301 /b\n", 6, 8,
        '"To": a status has its own line: write "Status 301"',
    ),
    "a rate of nginx": (
        HOST, "[CLIENT_LIMITS]\n    Rate 10r/s\n", 5, 10,
        '"Rate": a rate is a number from 1 to 1000000 for a second, minute, hour or day, such as 10/s or '
        "300/m",
    ),
    "an expression that does not compile": (
        HOST, "[HEADERS]\n    Match ~^/(api\n    Set X-A b\n", 5, 17,
        '"Match": the regular expression "~^/(api" does not compile: missing closing parenthesis, at '
        "byte 7",
    ),
    "a path without its slash": (
        HOST, "[HEADERS]\n    Match api\n    Set X-A b\n", 5, 11,
        '"Match": a pattern is a path such as /downloads, or a glob such as *.css',
    ),
    "an application by HTTP": (
        HOST, "[FASTCGI]\n    To http://127.0.0.1:9000\n", 5, 8,
        '"To": it takes unix:/PATH, HOST:PORT or the name of a group, and no URL; HTTP is for [PROXY]',
    ),
    "a socket of an application": (
        HOST, "[FASTCGI]\n    To /run/php/php-fpm.sock\n", 5, 8,
        '"To": "/run/php/php-fpm.sock" is no address of a server: a socket\'s path begins with unix: '
        "unix:/run/app.sock",
    ),
    "an interpreter without its folder": (
        HOST, "[CGI]\n    Match *.py\n    Interpreter .py python3\n", 6, 17,
        '"Interpreter": the program is an absolute path, such as /usr/bin/python3',
    ),
    "an origin without its scheme": (
        HOST, "[CORS]\n    Origins example.org\n", 5, 13,
        'no page has the origin "example.org": it has no scheme: write it as in https://example.org',
    ),
    "users that are missing": (
        HOST, "[AUTH]\n    Match /\n    Users /nonexistent\n", 6, 11,
        "/nonexistent cannot be read: No such file or directory",
    ),
    "a log in no folder": (
        HOST, "[LOGGER]\n    AccessLog /nonexistent/x.log\n", 5, 15,
        "cannot write /nonexistent/x.log: No such file or directory",
    ),
    "a log and its format": (
        HOST, "[LOGGER]\n    AccessLog /tmp/x.log combined\n", 5, 15,
        '"AccessLog": one path is needed (in quotes if it has blanks), or stdout, stderr, syslog or Off',
    ),
    "a control byte": (SERVER, "    DefaultMimeType a\x00b\n", 2, 22, "control byte 0x00"),
    "a quote that is open": (SERVER, '    DefaultMimeType "a\n', 2, 21, "this quote is never closed"),
    "a blank that is no blank": (
        SERVER, "    Workers\xa01\n", 2, 5,
        '"Workers\xa01" is not a key of [SERVER] here; a no-break space (U+00A0) is no blank: write a plain '
        "one",
    ),
    "an unclosed section": (SERVER, "[HTTP2\n", 1, 7, "the section's name is never closed with ]"),
    "a variable that is not set": (
        HOST, "[HOST]\n    DocumentRoot ${NO_SUCH_NAME}/www\n    ServerName h{number}\n", 2, 18,
        "${NO_SUCH_NAME} is neither set with @SET nor in the environment; ${NO_SUCH_NAME:-x} would give "
        "it a default",
    ),
    "a file for a folder": (
        HOST, "[HOST]\n    DocumentRoot /etc/passwd\n    ServerName h{number}\n", 2, 18,
        "cannot open the document root /etc/passwd: Not a directory",
    ),
}  # fmt: skip
TYPES = [
    ("text/javascript js", "a line is an extension without a dot, and a type: js text/javascript"),
    (".js text/javascript", "a line is an extension without a dot, and a type: js text/javascript"),
    ("js javascript", "a type has a slash, such as text/plain"),
    ("js text/javascript; charset=utf-8", None),
]


def fill(kind, text, number, root):
    whole = text.startswith("[HOST]") or kind is SERVER and text.startswith("[")
    return ((text if whole else kind + text).replace("{root}", str(root))).replace("{number}", str(number))


def test_all(tmp_path, site_root):
    """Each mistake is in a file of its own, a host or a part of monkey.conf."""
    files, expected = {}, {}
    for number, (name, (kind, text, line, col, sentence)) in enumerate(ROWS.items()):
        files[f"{'parts' if kind is SERVER else 'sites'}/{number}"] = fill(kind, text, number, site_root)
        expected[name] = [(line, col, "error", sentence)]
    includes = "".join(f"@INCLUDE {name}\n" for name in files if name.startswith("parts/"))
    files["monkey.conf"] = "[SERVER]\n    Listen 127.0.0.1:0\n" + includes
    files["monkey.mime"] = "[MIMETYPES]\n" + "".join(f"    {line}\n" for line, _ in TYPES)
    expected["types"] = [(2 + i, 5, "error", sentence) for i, (_, sentence) in enumerate(TYPES) if sentence]
    write_config(tmp_path / "conf", site_root, files=files)
    result = run("-c", tmp_path / "conf", "-t")
    found, names = {}, list(ROWS)
    for m in PLACE.finditer(result.stderr):
        file = os.path.basename(m["file"])
        name = names[int(file)] if file.isdecimal() else "types"
        found.setdefault(name, []).append((int(m["line"]), int(m["col"]), m["severity"], m["text"]))
    assert result.returncode == 1
    assert found == expected


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be"])
def test_utf16(tmp_path, site_root, codec):
    write_config(tmp_path / "conf", site_root)
    text = "[SERVER]\n    Listen 127.0.0.1:0\n"
    (tmp_path / "conf" / "monkey.conf").write_bytes(("\ufeff" + text if codec == "utf-16-be" else text).encode(codec))
    result = run("-c", tmp_path / "conf", "-t", errors="replace")
    assert result.returncode == 1
    assert "monkey.conf:1:" in result.stderr
    assert "control byte 0x00: the file is UTF-16, and must be UTF-8" in result.stderr
