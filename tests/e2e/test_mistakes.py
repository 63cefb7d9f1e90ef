# SPDX-License-Identifier: Apache-2.0
"""`monkey -t` on typical mistakes: words and syntax of nginx, Apache, lighttpd, Caddy and the original Monkey, and
misspelt names.
Each is one error, with its place and a sentence that says what would be right here."""

import os
import re

import pytest

from harness import build
from harness.server import run, write_config

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="the small build does not know other servers"),
]

PLACE = re.compile(r"^(?P<file>\S+?):(?P<line>\d+):(?P<col>\d+): (?P<severity>error|warning): (?P<text>.*)$", re.M)

BRACES = (
    "braces are not used: a section begins with a line [NAME], and its keys are indented below it, without a semicolon "
    "at their end"
)
BRACKETS = "<...> is not used: a section begins with a line [NAME], and its keys are indented below it"
A_HOST = "; a host is a file of sites/ that begins with [HOST]"
SOME_PATHS = "; a section for some paths has a line Match, such as [HEADERS], [AUTH], [ALIAS] and [RULES]"
A_BACKEND = "; a backend is a section [PROXY], in a file of sites/"
PROXY = '; write "Match /PATH" and "To http://HOST:PORT" in [PROXY], in a file of sites/'

ONLY_PATH = ": write $path for the path of the request, the only variable here"
AS_IT_IS = (
    " below the document root: a name is written as it is, without escapes, queries and variables but $path"
)
OWN_HOST = "; a target that begins with / has the scheme and the host of the request"
NO_VARIABLES = (
    '"To": a target has no variables such as "{}": KeepPath appends what follows the prefix of Match, and $1 to $9 are '
    "the captures of a regular expression{}; write a dollar as %24, a brace as %7B"
)

# What the text of a case is put below, unless it begins with its own line.
SERVER, HOST, LOAD = "monkey.conf", "default", "plugins.load"
HEADS = {SERVER: "[SERVER]\n", HOST: "[HOST]\n    DocumentRoot {root}\n", LOAD: "[PLUGINS]\n"}

# The file, its text, line and column of the mistake, and the sentence.
CASES = {
    "an equals sign": (
        SERVER,
        "    Workers = 2\n",
        2,
        13,
        'a blank separates a key from its value, not "=": write "Workers 2"',
    ),
    "an equals sign without blanks": (
        SERVER,
        "    Workers=2\n",
        2,
        12,
        'a blank separates a key from its value, not "=": write "Workers 2"',
    ),
    "a colon": (
        SERVER,
        "    KeepAlive: On\n",
        2,
        14,
        'a blank separates a key from its value, not ":": write "KeepAlive On"',
    ),
    "an equals sign before a path": (
        HOST,
        "    DocumentRoot = {root}\n",
        2,
        18,
        'a blank separates a key from its value, not "=": write "DocumentRoot {root}"',
    ),
    "a comment with slashes": (SERVER, "    // a comment\n", 2, 5, "a comment begins with #, not with //"),
    "a comment of C": (
        SERVER,
        "    /* a comment\n       of two lines */\n    Workers 1\n",
        2,
        5,
        "a comment begins with # in each of its lines, not with /*",
    ),
    "a comment with a semicolon": (SERVER, "    ; a comment\n", 2, 5, "a comment begins with #, not with a semicolon"),
    "a comment of HTML": (
        SERVER,
        "    <!-- a comment -->\n",
        2,
        5,
        "a comment begins with # in each of its lines, not with <!--",
    ),
    "slashes behind a value": (SERVER, "    Workers 2 // two\n", 2, 15, "a comment begins with #, not with //"),
    "slashes behind an address": (
        SERVER,
        "    Listen 127.0.0.1:0 // all\n",
        2,
        24,
        '"Listen": a comment begins with #, not with //',
    ),
    "a semicolon": (
        SERVER,
        "    Workers 2;\n",
        2,
        5,
        'lines do not end with a semicolon: remove it from the value of "Workers"',
    ),
    "a home": (
        HOST,
        "    DocumentRoot ~/www\n",
        2,
        18,
        '"DocumentRoot": ~ is not replaced by a folder here: write ${HOME}/ or the whole path',
    ),
    "a home of a log": (
        SERVER,
        "    ErrorLog ~/error.log\n",
        2,
        14,
        '"ErrorLog": ~ is not replaced by a folder here: write ${HOME}/ or the whole path',
    ),
    "a path as a URL": (
        HOST,
        "    DocumentRoot file:///srv/www\n",
        2,
        18,
        '"DocumentRoot": a path is not a URL: write it without file://',
    ),
    "single quotes": (
        SERVER,
        "    PidFile '/run/a pid'\n",
        2,
        13,
        '"PidFile": single quotes become part of the path: put it in "double quotes", or in none',
    ),
    "curly quotes": (
        SERVER,
        "    ErrorLog “/var/log/x”\n",
        2,
        14,
        '"ErrorLog": these quotes become part of the path: put it in "straight quotes", or in none',
    ),
    "a unit apart": (
        SERVER,
        "    Timeout 10 s\n",
        2,
        16,
        '"Timeout" takes a number with its unit, and no blank between them',
    ),
    "a unit in words": (
        SERVER,
        "    Timeout 1min\n",
        2,
        13,
        '"Timeout" wants a duration from 100ms to 1h, not "1min"; did you mean "1m"? (units: ms, s, m, h, d)',
    ),
    "a unit with its byte": (
        SERVER,
        "    MaxBodySize 10MB\n",
        2,
        17,
        '"MaxBodySize" wants a size, not "10MB"; did you mean "10M"? (units: B, K, M, G)',
    ),
    "a unit with its byte, of two": (
        SERVER,
        "    MaxBodySize 20kib\n",
        2,
        17,
        '"MaxBodySize" wants a size, not "20kib"; did you mean "20K"? (units: B, K, M, G)',
    ),
    "a unit that is too large": (
        SERVER,
        "    Timeout 99hours\n",
        2,
        13,
        '"Timeout" wants a duration from 100ms to 1h, not "99hours" (units: ms, s, m, h, d)',
    ),
    "yes": (SERVER, "    KeepAlive yes\n", 2, 15, '"KeepAlive" wants On or Off, not "yes"; did you mean "On"?'),
    "a key of another file": (
        HOST,
        "    Listen 80\n",
        3,
        5,
        'unknown key "Listen" in [HOST]; it belongs in [SERVER], in monkey.conf',
    ),
    "a misspelt key": (SERVER, "    Listten 80\n", 2, 5, 'unknown key "Listten" in [SERVER]; did you mean "Listen"?'),
    "Monkey: a plugin of the original": (
        LOAD,
        "    Load liana\n    Load /usr/lib/monkey/monkey-logger.so\n    Load static\n",
        3,
        10,
        'there is no plugin "/usr/lib/monkey/monkey-logger.so"; did you mean "logger"?',
    ),
    "Monkey: a plugin with another name": (
        LOAD,
        "    Load liana\n    Load /usr/lib/monkey/monkey-polarssl.so\n    Load static\n",
        3,
        10,
        'there is no plugin "/usr/lib/monkey/monkey-polarssl.so"; did you mean "tls"?',
    ),
    "Monkey: RSAKeyFile": (
        SERVER,
        "    Listen 2001\n[TLS]\n    RSAKeyFile rsa.pem\n",
        4,
        5,
        'unknown key "RSAKeyFile" in [TLS]; write "CertificateKey FILE" in [TLS], in a file of sites/',
    ),
    "Monkey: Palm": (
        SERVER,
        "    Listen 2001\n[PALM]\n    Extension php\n",
        3,
        1,
        "unknown section [PALM]; programs run in [CGI], or in [FASTCGI] and [SCGI] if they are servers",
    ),
    "Monkey: a handler with parameters": (
        HOST,
        "[HANDLERS]\n    Match *.pl cgi /usr/bin/perl text/html\n",
        4,
        11,
        '"Match": expected a pattern for paths and the name of a plugin, whose settings are in its own sections',
    ),
    "Monkey: the shell on the standard input": (
        SERVER,
        "    Listen 2001\n[CHEETAH]\n    Listen STDIN\n",
        4,
        12,
        '"Listen": expected the path of a socket; without the line it is the one that `monkey shell` looks for',
    ),
    "Monkey: a page without a slash": (
        HOST,
        "[ERROR_PAGES]\n    404 404.html\n",
        4,
        5,
        "a page is a path below the document root: write /404.html",
    ),
    "a misspelt section": (
        HOST,
        "[REDIRET]\n    Match /a\n    To /b\n",
        3,
        1,
        "unknown section [REDIRET]; did you mean [REDIRECT]?",
    ),
    "nginx: a server": (
        HOST,
        "server {\n    listen 80;\n    root /srv;\n}\n[HOST]\n    DocumentRoot {root}\n",
        1,
        1,
        BRACES + A_HOST,
    ),
    "nginx: a server in a line": (
        HOST,
        "server { listen 80; root /srv; }\n[HOST]\n    DocumentRoot {root}\n",
        1,
        1,
        BRACES + A_HOST,
    ),
    "nginx: a location": (
        HOST,
        "    location /x {\n        expires 3d;\n    }\n",
        3,
        5,
        BRACES + SOME_PATHS + ", in a file of sites/",
    ),
    "nginx: http": (
        SERVER,
        "http {\n    sendfile on;\n}\n[SERVER]\n    Listen 127.0.0.1:0\n",
        1,
        1,
        BRACES + "; what holds for the whole server is in [SERVER] of monkey.conf",
    ),
    "nginx: upstream": (
        SERVER,
        "upstream backend {\n    server 127.0.0.1:8080;\n}\n[SERVER]\n    Listen 127.0.0.1:0\n",
        1,
        1,
        BRACES + A_BACKEND,
    ),
    "nginx: listen": (
        SERVER,
        "    listen 80 default_server\n",
        2,
        15,
        '"Listen": the host in sites/default is the default: leave the word out',
    ),
    "nginx: ssl http2": (
        SERVER,
        "    Listen 443 ssl http2\n",
        2,
        20,
        '"Listen": leave the word out: [HTTP2] says whether HTTP/2 is spoken',
    ),
    "nginx: worker_processes": (
        SERVER,
        "    worker_processes auto\n",
        2,
        5,
        'unknown key "worker_processes" in [SERVER]; did you mean "Workers"?',
    ),
    "nginx: client_max_body_size": (
        SERVER,
        "    client_max_body_size 10m\n",
        2,
        5,
        'unknown key "client_max_body_size" in [SERVER]; did you mean "MaxBodySize"?',
    ),
    "nginx: server_tokens": (
        SERVER,
        "    server_tokens off\n",
        2,
        5,
        'unknown key "server_tokens" in [SERVER]; write "HideVersion On" in [SERVER], in monkey.conf',
    ),
    "nginx: include": (
        SERVER,
        "    include mime.types\n",
        2,
        5,
        'unknown key "include" in [SERVER]; write @INCLUDE FILE at the start of a line',
    ),
    "nginx: gzip": (
        SERVER,
        "    gzip on\n",
        2,
        5,
        'unknown key "gzip" in [SERVER]; write "Compress On" in [HOST], in a file of sites/',
    ),
    "nginx: user": (
        SERVER,
        "    error_log /var/log/e.log\n",
        2,
        5,
        'unknown key "error_log" in [SERVER]; did you mean "ErrorLog"?',
    ),
    "nginx: root": (
        HOST,
        "    root {root};\n",
        2,
        5,
        "lines do not end with a semicolon: remove it from the value of \"Root\"",
    ),
    "nginx: server_name": (
        HOST,
        "    server_name example.org\n",
        3,
        5,
        'unknown key "server_name" in [HOST]; did you mean "ServerName"?',
    ),
    "nginx: index": (HOST, "    index index.html\n", 3, 5, 'unknown key "index" in [HOST]; did you mean "Indexfile"?'),
    "nginx: try_files": (
        HOST,
        "    try_files $uri /index.html\n",
        3,
        5,
        'unknown key "try_files" in [HOST]; did you mean "TryFiles"?',
    ),
    "nginx: proxy_pass": (
        HOST,
        "    proxy_pass http://127.0.0.1:8080\n",
        3,
        5,
        'unknown key "proxy_pass" in [HOST]' + PROXY,
    ),
    "nginx: fastcgi_pass": (
        HOST,
        "    fastcgi_pass unix:/run/php/php-fpm.sock\n",
        3,
        5,
        'unknown key "fastcgi_pass" in [HOST]; write "To unix:/PATH" in [FASTCGI], in a file of sites/',
    ),
    "nginx: uwsgi_pass": (
        HOST,
        "    uwsgi_pass 127.0.0.1:3031\n",
        3,
        5,
        'unknown key "uwsgi_pass" in [HOST]; there is no uwsgi: the application is for [PROXY] by HTTP, or for '
        "[FASTCGI] or [SCGI]",
    ),
    "Apache: ScriptAlias": (
        HOST,
        "    ScriptAlias /cgi-bin /usr/lib/cgi-bin\n",
        3,
        5,
        'unknown key "ScriptAlias" in [HOST]; write "Match /PATH" and "Root FOLDER" in [CGI], in a file of sites/',
    ),
    "nginx: return": (
        HOST,
        "    return 301 https://example.org/\n",
        3,
        5,
        'unknown key "return" in [HOST]; write "Match PATH" and "To TARGET" in [REDIRECT], in a file of sites/',
    ),
    "nginx: a fixed answer": (
        HOST,
        "    return 200 ok\n",
        3,
        5,
        'unknown key "return" in [HOST]; write "Match PATH" and "Text TEXT" in [RESPOND], in a file of sites/',
    ),
    "nginx: an error": (
        HOST,
        "    return 404\n",
        3,
        5,
        'unknown key "return" in [HOST]; write "Match PATH" and "Action deny 404" in [RULES], in a file of sites/',
    ),
    "nginx: return in its section": (
        HOST,
        "[REDIRECT]\n    Match /a\n    To /b\n    return 301 /b\n",
        6,
        5,
        'unknown key "return" in [REDIRECT]; write "Match PATH" and "To TARGET"',
    ),
    "nginx: a location without a brace": (
        HOST,
        "    location /x\n",
        3,
        5,
        'unknown key "location" in [HOST]' + SOME_PATHS,
    ),
    "nginx: $uri": (
        HOST,
        "    TryFiles $uri /index.html\n",
        3,
        14,
        '"TryFiles" takes names that begin with "/" or $path, and a last =CODE, not "$uri"' + ONLY_PATH,
    ),
    "nginx: a script with arguments": (
        HOST,
        "    TryFiles $path /index.php?$args\n",
        3,
        20,
        '"TryFiles" takes names that begin with "/" or $path, and a last =CODE, not "/index.php?$args": leave out what '
        "begins with ?, as a script gets the query of the request",
    ),
    "Caddy: {path}": (
        HOST,
        "    TryFiles {path} /index.html\n",
        3,
        14,
        '"TryFiles" takes names that begin with "/" or $path, and a last =CODE, not "{path}"' + ONLY_PATH,
    ),
    "a name with an escape": (
        HOST,
        "    TryFiles $path /a%20b.html\n",
        3,
        20,
        "there is no file /a%20b.html" + AS_IT_IS,
    ),
    "a name with a query": (
        HOST,
        "    TryFiles $path /index.html?a=b =404\n",
        3,
        20,
        "there is no file /index.html?a=b" + AS_IT_IS,
    ),
    "nginx: variables of a target": (
        HOST,
        "[REDIRECT]\n    Match /\n    To https://a.example$request_uri\n",
        5,
        25,
        NO_VARIABLES.format("$request_uri", ""),
    ),
    "nginx: the host of a target": (
        HOST,
        "[REDIRECT]\n    Match /\n    To https://${host}/a\n",
        5,
        16,
        '${host} is neither set with @SET nor in the environment; ${host:-x} would give it a default',
    ),
    "nginx: $host in a target": (
        HOST,
        "[REDIRECT]\n    Match /\n    To https://$host/a\n",
        5,
        16,
        NO_VARIABLES.format("$host", OWN_HOST),
    ),
    "Caddy: a target": (
        HOST,
        "[REDIRECT]\n    Match /\n    To https://{host}{uri}\n",
        5,
        16,
        NO_VARIABLES.format("{host}", OWN_HOST),
    ),
    "Apache: a target": (
        HOST,
        "[REDIRECT]\n    Match /\n    To https://%{HTTP_HOST}%{REQUEST_URI}\n",
        5,
        16,
        NO_VARIABLES.format("%{HTTP_HOST}", OWN_HOST),
    ),
    "HAProxy: a target": (
        HOST,
        "[REDIRECT]\n    Match /\n    To https://a.example%[path]\n",
        5,
        25,
        NO_VARIABLES.format("%[path]", ""),
    ),
    "a variable of a rewrite": (
        HOST,
        "[REWRITE]\n    Match /a\n    To /b?h=$http_x_a\n",
        5,
        13,
        NO_VARIABLES.format("$http_x_a", ""),
    ),
    "a variable of a host's target": (
        HOST,
        "    Redirect https://a.example{uri}\n",
        3,
        31,
        '"Redirect": this target has no variables: the path and the query of the request follow it; write a dollar as '
        "%24, a brace as %7B",
    ),
    "nginx: a variable of a header": (
        HOST,
        "[PROXY]\n    Match /x\n    To http://127.0.0.1:1\n    RequestSet X-Path $uri\n",
        6,
        16,
        '"RequestSet": requests have no variable "uri"; did you mean "path"?',
    ),
    "nginx: rewrite": (
        HOST,
        "    rewrite ^/a /b\n",
        3,
        5,
        'unknown key "rewrite" in [HOST]; write "Match ~EXPRESSION" and "To PATH" in [REWRITE], in a file of sites/',
    ),
    "nginx: error_page": (
        HOST,
        "    error_page 404 /404.html\n",
        3,
        5,
        'unknown key "error_page" in [HOST]; write "404 /404.html" in [ERROR_PAGES], in a file of sites/',
    ),
    "nginx: access_log": (
        HOST,
        "    access_log /var/log/a.log\n",
        3,
        5,
        'unknown key "access_log" in [HOST]; write "AccessLog FILE" in [LOGGER], in a file of sites/',
    ),
    "nginx: add_header": (
        HOST,
        "    add_header X-Foo bar\n",
        3,
        5,
        'unknown key "add_header" in [HOST]; write "Set NAME VALUE" in [HEADERS], in a file of sites/',
    ),
    "nginx: autoindex": (
        HOST,
        "    autoindex on\n",
        3,
        5,
        'unknown key "autoindex" in [HOST]; write "Listing On"',
    ),
    "nginx: alias": (
        HOST,
        "    alias /srv/x\n",
        3,
        5,
        'unknown key "alias" in [HOST]; write "Match PATH" and "To FOLDER" in [ALIAS], in a file of sites/',
    ),
    "nginx: ssl_certificate": (
        HOST,
        "    ssl_certificate /etc/x.pem\n",
        3,
        5,
        'unknown key "ssl_certificate" in [HOST]; write "Certificate FILE" in [TLS], in a file of sites/',
    ),
    "nginx: deny": (
        HOST,
        "    deny all\n",
        3,
        5,
        'unknown key "deny" in [HOST]; write "Network NETWORK" and "Action deny" in [RULES], in a file of sites/',
    ),
    "nginx: a log variable": (
        HOST,
        '[LOGGER]\n    Format "$remote_addr $status"\n',
        4,
        13,
        '"Format": there is no variable "remote_addr"; did you mean "client"?',
    ),
    "Apache: a virtual host": (
        HOST,
        "<VirtualHost *:80>\n  DocumentRoot /srv\n</VirtualHost>\n[HOST]\n    DocumentRoot {root}\n",
        1,
        1,
        BRACKETS + A_HOST,
    ),
    "Apache: a directory": (
        HOST,
        "    <Directory /srv>\n        Require all granted\n    </Directory>\n",
        3,
        5,
        BRACKETS + SOME_PATHS + ", in a file of sites/",
    ),
    "Apache: a module": (
        SERVER,
        "<IfModule ssl_module>\nListen 443\n</IfModule>\n[SERVER]\n    Listen 127.0.0.1:0\n",
        1,
        1,
        BRACKETS + "; a section loads its plugin",
    ),
    "Apache: ServerRoot": (
        SERVER,
        "    ServerRoot /etc\n",
        2,
        5,
        'unknown key "ServerRoot" in [SERVER]; leave it out: relative paths start at the folder of '
        "the file that has them",
    ),
    "Apache: LoadModule": (
        SERVER,
        "    LoadModule a_module a.so\n",
        2,
        5,
        'unknown key "LoadModule" in [SERVER]; leave it out: a section loads its plugin',
    ),
    "Apache: ServerAlias": (
        HOST,
        "    ServerAlias www.example.org\n",
        3,
        5,
        'unknown key "ServerAlias" in [HOST]; write all names in the line ServerName of [HOST]',
    ),
    "Apache: DirectoryIndex": (
        HOST,
        "    DirectoryIndex a.html\n",
        3,
        5,
        'unknown key "DirectoryIndex" in [HOST]; did you mean "Indexfile"?',
    ),
    "Apache: AllowOverride": (
        HOST,
        "    AllowOverride None\n",
        3,
        5,
        'unknown key "AllowOverride" in [HOST]; leave it out: there are no .htaccess files',
    ),
    "Apache: Options": (
        HOST,
        "    Options Indexes\n",
        3,
        5,
        'unknown key "Options" in [HOST]; lists of folders are the section [DIRLISTING], symbolic '
        "links the key SymLink",
    ),
    "Apache: ErrorDocument": (
        HOST,
        "    ErrorDocument 404 /404.html\n",
        3,
        5,
        'unknown key "ErrorDocument" in [HOST]; write "404 /404.html" in [ERROR_PAGES], in a file of sites/',
    ),
    "Apache: CustomLog": (
        HOST,
        "    CustomLog /var/log/a.log combined\n",
        3,
        5,
        'unknown key "CustomLog" in [HOST]; write "AccessLog FILE" in [LOGGER], in a file of sites/',
    ),
    "Apache: Header": (
        HOST,
        "    Header set X-Foo bar\n",
        3,
        5,
        'unknown key "Header" in [HOST]; write "Set NAME VALUE" in [HEADERS], in a file of sites/',
    ),
    "Apache: RewriteRule": (
        HOST,
        "    RewriteRule ^/a /b\n",
        3,
        5,
        'unknown key "RewriteRule" in [HOST]; write "Match ~EXPRESSION" and "To PATH" in '
        "[REWRITE], in a file of sites/",
    ),
    "Apache: ProxyPass": (
        HOST,
        "    ProxyPass /a http://127.0.0.1/\n",
        3,
        5,
        'unknown key "ProxyPass" in [HOST]' + PROXY,
    ),
    "Apache: ProxyPass in its section": (
        HOST,
        "[PROXY]\n    Match /a\n    To http://127.0.0.1:1\n    ProxyPass http://127.0.0.1/\n",
        6,
        5,
        'unknown key "ProxyPass" in [PROXY]; write "Match /PATH" and "To http://HOST:PORT"',
    ),
    "Apache: a log format": (
        HOST,
        '[LOGGER]\n    Format "%h %t"\n',
        4,
        13,
        '"Format": a variable begins with a dollar: write $client in place of %h',
    ),
    "Apache: [VirtualHost]": (
        SERVER,
        "[VirtualHost]\n    ServerName a\n",
        2,
        1,
        "unknown section [VirtualHost]; it is called [HOST] here, and belongs in a file of sites/",
    ),
    "lighttpd: server.port": (
        SERVER,
        "    server.port = 80\n",
        2,
        5,
        'unknown key "server.port" in [SERVER]; did you mean "Listen"?',
    ),
    "lighttpd: a root": (
        HOST,
        '    server.document-root = "{root}"\n',
        2,
        5,
        'unknown key "server.document-root" in [HOST]; did you mean "DocumentRoot"?',
    ),
    "lighttpd: a condition": (
        HOST,
        '$HTTP["host"] == "a.example" {\n}\n[HOST]\n    DocumentRoot {root}\n',
        1,
        1,
        BRACES + A_HOST,
    ),
    "lighttpd: modules": (
        SERVER,
        '    server.modules += ( "mod_x" )\n',
        2,
        5,
        'unknown key "server.modules" in [SERVER]; leave it out: a section loads its plugin',
    ),
    "Caddy: a host": (
        HOST,
        "example.org {\n    root * /srv\n}\n[HOST]\n    DocumentRoot {root}\n",
        1,
        1,
        BRACES + A_HOST,
    ),
    "Caddy: reverse_proxy": (
        HOST,
        "    reverse_proxy localhost:8080\n",
        3,
        5,
        'unknown key "reverse_proxy" in [HOST]' + PROXY,
    ),
    "Caddy: respond": (
        HOST,
        "    respond hello 200\n",
        3,
        5,
        'unknown key "respond" in [HOST]; write "Match PATH" and "Text TEXT" in [RESPOND], in a file of sites/',
    ),
    "HAProxy: a fixed answer": (
        HOST,
        "    http-request return status 200\n",
        3,
        5,
        'unknown key "http-request" in [HOST]; write "Match PATH" and "Text TEXT" in [RESPOND], in a file of sites/',
    ),
    "Caddy: rate_limit": (
        HOST,
        "    rate_limit 5\n",
        3,
        5,
        'unknown key "rate_limit" in [HOST]; write "Rate NUMBER/s" in [CLIENT_LIMITS], in a file of sites/',
    ),
    "Caddy: encode": (
        HOST,
        "    encode gzip\n",
        3,
        5,
        'unknown key "encode" in [HOST]; write "Compress On"',
    ),
    "Caddy: file_server": (
        HOST,
        "    file_server\n",
        3,
        5,
        'unknown key "file_server" in [HOST]; leave it out: files below DocumentRoot are served',
    ),
    "Caddy: import": (
        HOST,
        "    import snippets\n",
        3,
        5,
        'unknown key "import" in [HOST]; write @INCLUDE FILE at the start of a line',
    ),
    "a URL to listen at": (
        SERVER,
        "    Listen http://localhost:8080\n",
        2,
        12,
        '"Listen": an address is not a URL: write "Listen localhost:8080"',
    ),
    "a URL without a port": (
        SERVER,
        "    Listen http://localhost/\n",
        2,
        12,
        '"Listen": an address is not a URL: write "Listen localhost:80"',
    ),
    "a URL with https": (
        SERVER,
        "    Listen https://127.0.0.1/\n",
        2,
        12,
        '"Listen": an address is not a URL: write "Listen 127.0.0.1:443 tls"',
    ),
    "a port with a colon": (
        SERVER,
        "    Listen :8080\n",
        2,
        12,
        '"Listen": a port on all addresses has no colon: write "Listen 8080"',
    ),
    "a list of ports": (
        SERVER,
        "    Listen 80, 443\n",
        2,
        12,
        '"Listen": one address a line, without a comma: write a line Listen for each',
    ),
    "a header with a colon": (
        HOST,
        '[HEADERS]\n    Add "X-Foo: bar"\n',
        4,
        10,
        '"Add": a blank separates name and value, not a colon: write "Add X-Foo bar"',
    ),
    "a header with a colon and no quotes": (
        HOST,
        "[HEADERS]\n    Set X-Foo: bar baz\n",
        4,
        9,
        '"Set": a blank separates name and value, not a colon: write "Set X-Foo bar baz"',
    ),
    "a header to remove with a colon": (
        HOST,
        "[HEADERS]\n    Remove X-Foo:\n",
        4,
        12,
        '"Remove": a blank separates name and value, not a colon: write "Remove X-Foo"',
    ),
    "a name as a URL": (
        HOST,
        "    ServerName https://example.org/\n",
        3,
        16,
        'ServerName "https://example.org/": a name is not a URL: write it as in example.org',
    ),
    "a name with a port": (
        HOST,
        "    ServerName example.org:80\n",
        3,
        16,
        'ServerName "example.org:80": a name has no port, and an IPv6 address is written in brackets',
    ),
    "names with commas": (
        HOST,
        "    ServerName a.example, b.example\n",
        3,
        16,
        'ServerName "a.example,": a blank separates names, not a comma',
    ),
    "a misspelt variable of a log": (
        HOST,
        '[LOGGER]\n    Format "$stauts"\n',
        4,
        13,
        '"Format": there is no variable "stauts"; did you mean "status"?',
    ),
    "[SSL]": (HOST, "[SSL]\n    Certificate a\n", 3, 1, "unknown section [SSL]; did you mean [TLS]?"),
    "[LOCATION /x]": (HOST, "[LOCATION /x]\n    Expires 3d\n", 3, 1, "unknown section [LOCATION /x]" + SOME_PATHS),
    "[UPSTREAM]": (
        HOST,
        "[UPSTREAM]\n    To a\n",
        3,
        1,
        "[UPSTREAM] belongs in monkey.conf, not here",
    ),
}

# Sections that a site has besides, and what is reported of them.
GROUP = "[SERVER]\n    Listen 127.0.0.1:0\n[UPSTREAM]\n    Name app\n    Server 127.0.0.1:8080\n"
ONE_LISTENER = "[SERVER]\n    Listen 127.0.0.1:0\n"
ALLOW = "[RULES]\n    Network 192.0.2.0/24\n    Action allow\n"
DENY = "[RULES]\n    Action deny\n"
NO_EFFECT = (
    "this has no effect: what no [RULES] denies is allowed; for these clients alone, write a section with "
    '"Action deny" behind it'
)
NO_DENY_OF_THESE = (
    "this has no effect: no [RULES] behind it denies any of these paths to these clients, and what none denies is "
    "allowed"
)
IN_SITES = "would be a host, as each file of sites/ is: write a path in another folder"
NO_EFFECT_ON_CONNECTIONS = (
    "this has no effect: what no [CONNECTIONS] refuses is accepted; for these clients alone, write a section that "
    "drops all others behind it"
)
NOWHERE_ELSE = 'the server listens nowhere else, and serves nothing else here: add a line "Listen" for the sites'
AFTER_STATIC = (
    'the plugin "{}" should come before "static": a file is sent in place of what this plugin would respond, and '
    "methods other than GET and HEAD get 405"
)
WITH_PORT = (
    'app:8080 has a port, and so is not the group "app" of [UPSTREAM], whose servers have ports: write app alone'
)
NO_GROUP = (
    'no [UPSTREAM] has the name "appp", which is looked up as that of a server; the groups are: app; did you mean app?'
)
NO_GROUP_OF_SCRIPTS = (
    'no [UPSTREAM] has the name "apq", and the address of a server needs a port; did you mean app?'
)
OWN_FOLDER = (
    "the document root is this folder, or below it: all of its files are programs, and none is sent. Write a folder "
    "that has nothing but programs"
)
RELATIVE = (
    "a path without a slash at its start begins at the folder of this file: write all of it, such as "
    '"FlagFile {conf}/sites/../closed"'
)
NO_PATHS = 'this section has no effect: write "LivenessPath /healthz", "ReadinessPath /readyz", or both'
NO_EXPRESSION = (
    '"PrecompressedMatch": an expression stands right behind ~, without a blank: write it as ~\\.php$'
)
SECOND_PATTERN = (
    '"{}": this is a second pattern, and one is taken here: write a section for each, or an expression such as '
    "~^/(a|b)(/|$)"
)
A_BLANK = '"Match": a blank ends a pattern: put it in quotes if paths have the blank'
A_COMMA = (
    '"{}": a comma does not separate patterns, and is part of a path: put the pattern in quotes if paths have it'
)
A_FRAGMENT = (
    '"Match": browsers keep fragments for themselves: leave out what begins with #, or put the pattern in quotes if '
    "names of files have the sign"
)
A_QUERY = (
    '"{}": only paths are compared, without what follows ?: leave it out; some sections have "When query NAME =VALUE"'
)
AS_HEADER = 'headers of responses have no variables: "{}" is sent as it is'
AS_VARIABLE = "; RequestSet of [PROXY] and formats of logs have it as $"
NO_HOST = (
    "the section [HOST] is missing: each file of sites/ is a host, and has it; move other files to another folder"
)

# Patterns whose blanks, commas and signs are meant.
QUOTED = ('"/my files"', '"/a /b"', '"/a,/b"', '"/c#"', "/d\\#", '"~^/e f"', '"/g,"', "/h,i", "~^/j{1,2}$", "/k?.png")

WHOLE = ("#", "[SERVER]")  # how texts begin that get no head
# The files, and what is reported: file, line, column, severity, sentence.
REPORTS = {
    "a pattern with an escape": (
        {HOST: "[RULES]\n    Match /my%20files\n    Action deny\n"},
        [(HOST, 4, 14, "error", '"Match": paths are compared without escapes: write "/my files"')],
    ),
    "an exact path with an escape": (
        {HOST: "[REDIRECT]\n    Match =/caf%C3%A9\n    To /c\n"},
        [(HOST, 4, 16, "error", '"Match": paths are compared without escapes: write "=/café"')],
    ),
    "two patterns of a rule": (
        {HOST: "[RULES]\n    Match /a /b\n    Action deny\n"},
        [(HOST, 4, 14, "error", SECOND_PATTERN.format("Match"))],
    ),
    "a path and a glob": (
        {HOST: "[HEADERS]\n    Match /a *.css\n    Expires 1d\n"},
        [(HOST, 4, 14, "error", SECOND_PATTERN.format("Match"))],
    ),
    "two patterns of a backend": (
        {HOST: "[PROXY]\n    Match /api /v2\n    To http://127.0.0.1:1\n"},
        [(HOST, 4, 16, "error", SECOND_PATTERN.format("Match"))],
    ),
    "two patterns of scripts": (
        {HOST: "[CGI]\n    Match /a /b\n    Root /usr/lib/cgi-bin\n"},
        [(HOST, 4, 14, "error", SECOND_PATTERN.format("Match"))],
    ),
    "two patterns of a login": (
        {HOST: "[AUTH]\n    Match /a /b\n    Type Forward\n    To http://127.0.0.1:9\n"},
        [(HOST, 4, 14, "error", SECOND_PATTERN.format("Match"))],
    ),
    "two patterns of an alias": (
        {HOST: "[ALIAS]\n    Match /a /b\n    To /tmp\n"},
        [(HOST, 4, 14, "error", SECOND_PATTERN.format("Match"))],
    ),
    "two patterns of limits": (
        {HOST: "[LIMITS]\n    Match /a /b\n    MaxBodySize 5M\n"},
        [(HOST, 4, 14, "error", SECOND_PATTERN.format("Match"))],
    ),
    "two exceptions": (
        {HOST: "[MAINTENANCE]\n    FlagFile /none\n    Except =/a =/b\n"},
        [(HOST, 5, 16, "error", SECOND_PATTERN.format("Except"))],
    ),
    "a second pattern behind a comma": (
        {HOST: "[RULES]\n    Match /a, /b\n    Action deny\n"},
        [(HOST, 4, 15, "error", SECOND_PATTERN.format("Match"))],
    ),
    "patterns with a comma": (
        {HOST: "[RULES]\n    Match /a,/b\n    Action deny\n"},
        [(HOST, 4, 13, "error", A_COMMA.format("Match"))],
    ),
    "globs with a comma": (
        {HOST: "[RULES]\n    Match *.bak,*.old\n    Action deny\n"},
        [(HOST, 4, 16, "error", A_COMMA.format("Match"))],
    ),
    "a comma behind a pattern": (
        {HOST: "[RULES]\n    Match /a,\n    Action deny\n"},
        [(HOST, 4, 13, "error", A_COMMA.format("Match"))],
    ),
    "a comma in a list of patterns": (
        {HOST: "    Precompressed br\n    PrecompressedMatch *.css, *.js\n"},
        [(HOST, 4, 29, "error", A_COMMA.format("PrecompressedMatch"))],
    ),
    "a pattern with a blank": (
        {HOST: "[RULES]\n    Match /my files\n    Action deny\n"},
        [(HOST, 4, 15, "error", A_BLANK)],
    ),
    "an expression with a blank": (
        {HOST: "[RULES]\n    Match ~^/my files\n    Action deny\n"},
        [(HOST, 4, 17, "error", A_BLANK)],
    ),
    "a pattern with a fragment": (
        {HOST: "[RULES]\n    Match /a#b\n    Action deny\n"},
        [(HOST, 4, 13, "error", A_FRAGMENT)],
    ),
    "a pattern with a query": (
        {HOST: "[RULES]\n    Match /a?x=1\n    Action deny\n"},
        [(HOST, 4, 13, "error", A_QUERY.format("Match"))],
    ),
    "an exact path with a query": (
        {HOST: "[REDIRECT]\n    Match =/a?x\n    To /b\n"},
        [(HOST, 4, 14, "error", A_QUERY.format("Match"))],
    ),
    "an expression with a query": (
        {HOST: "[REWRITE]\n    Match ~^/a\\?id=([0-9]+)\n    To /b\n"},
        [(HOST, 4, 16, "error", A_QUERY.format("Match"))],
    ),
    "a plugin for a path with a query": (
        {HOST: "[HANDLERS]\n    Match /a?x=1 static\n"},
        [(HOST, 4, 13, "error", A_QUERY.format("Match"))],
    ),
    "patterns in quotes": (
        {HOST: "".join(f'[RULES]\n    Match {match}\n    Action deny\n' for match in QUOTED)}, []
    ),
    "a condition with a query": (
        {HOST: "[REDIRECT]\n    Match /a\n    When header Referer ~\\?x=%20\n    To /b\n"}, []
    ),
    "variables of headers": (
        {HOST: "[HEADERS]\n    Set X $remote_addr\n    Add Y b\n    Add Z a:%{HTTP_HOST}e\n    Add T {time_now}\n"},
        [
            (HOST, 4, 9, "warning", AS_HEADER.format("$remote_addr") + AS_VARIABLE + "client"),
            (HOST, 6, 9, "warning", AS_HEADER.format("%{HTTP_HOST}") + AS_VARIABLE + "host"),
            (HOST, 7, 9, "warning", AS_HEADER.format("{time_now}")),
        ],
    ),
    "headers with signs": (
        {HOST: '[HEADERS]\n    Set NEL "{\\"a\\": {\\"b\\": 1}}"\n    Set X $5\n    Set Y "50 %, US$"\n'},
        [],
    ),
    "variables of pages": (
        {HOST: '[ERROR_PAGES]\n    404 "no $request_uri here"\n    403 "<p>{host}</p>"\n    410 "$5, {a b}, 50 %"\n'},
        [
            (HOST, 4, 5, "warning", 'a page has no variables: "$request_uri" is sent as it is'),
            (HOST, 5, 5, "warning", 'a page has no variables: "{host}" is sent as it is'),
        ],
    ),
    "a variable of a text": (
        {HOST: "[MAINTENANCE]\n    FlagFile /none\n    Text {remote_host}\n"},
        [(HOST, 5, 10, "warning", 'a text has no variables: "{remote_host}" is sent as it is')],
    ),
    "an index with an escape": (
        {HOST: "    Indexfile my%20index.html index.html\n"},
        [
            (
                HOST, 3, 15, "warning",
                "the document root has no file my%20index.html: a name is written as it is, without escapes, queries "
                "and variables",
            )
        ],
    ),
    "an exception with an escape": (
        {HOST: "[MAINTENANCE]\n    FlagFile /none\n    Except *%2ecss\n"},
        [(HOST, 5, 13, "error", '"Except": paths are compared without escapes: write "*.css"')],
    ),
    "an expression behind a blank": (
        {HOST: "[RULES]\n    Match ~ \\.php$\n    Action deny\n"},
        [(HOST, 4, 12, "error", '"Match": no path has this blank: write ~\\.php$')],
    ),
    "an expression for all cases behind a blank": (
        {HOST: "[HEADERS]\n    Match ~* \\.(png|gif)$\n    Expires 1d\n"},
        [(HOST, 4, 13, "error", '"Match": no path has this blank: write ~*\\.(png|gif)$')],
    ),
    "an expression among other patterns": (
        {HOST: "    Precompressed br\n    PrecompressedMatch *.css ~ \\.js$\n"},
        [(HOST, 4, 31, "error", NO_EXPRESSION)],
    ),
    "an allow without a deny": ({HOST: ALLOW}, [(HOST, 5, 12, "warning", NO_EFFECT)]),
    "an allow behind the deny": (
        {HOST: "[RULES]\n    Match /a\n    Action deny\n" + ALLOW}, [(HOST, 8, 12, "warning", NO_EFFECT)]
    ),
    "two of them": (
        {HOST: ALLOW + ALLOW.replace(".2.", ".3.")}, [(HOST, line, 12, "warning", NO_EFFECT) for line in (5, 8)]
    ),
    "an allow of connections": (
        {SERVER: ONE_LISTENER + "[CONNECTIONS]\n    Network 192.0.2.0/24\n    Action allow\n"},
        [(SERVER, 5, 12, "warning", NO_EFFECT_ON_CONNECTIONS)],
    ),
    "an allow, and a login": (
        {HOST: ALLOW + "[AUTH]\n    Type Forward\n    To http://127.0.0.1:9\n    Satisfy any\n"}, []
    ),
    "an allow, and a page of the cache": ({HOST: ALLOW + "[CACHE]\n    Admin /cache\n"}, []),
    "an allow of other paths than the deny": (
        {HOST: "[RULES]\n    Match /a\n    Action allow\n[RULES]\n    Match /b\n    Action deny\n"},
        [(HOST, 5, 12, "warning", NO_DENY_OF_THESE)],
    ),
    "an allow of other globs than the deny": (
        {HOST: "[RULES]\n    Match /a/*.css\n    Action allow\n[RULES]\n    Match /b/**\n    Action deny\n"},
        [(HOST, 5, 12, "warning", NO_DENY_OF_THESE)],
    ),
    "an allow of other clients than the deny": (
        {HOST: ALLOW + "[RULES]\n    Network 198.51.100.0/24 2001:db8::/32\n    Action deny\n"},
        [(HOST, 5, 12, "warning", NO_DENY_OF_THESE)],
    ),
    "an allow of clients of the deny": (
        {HOST: ALLOW + "[RULES]\n    Network 198.51.100.0/24 192.0.0.0/16\n    Action deny\n"}, []
    ),
    "an allow of paths, and a deny of all": (
        {HOST: "[RULES]\n    Match /a\n    Action allow\n[RULES]\n    Action deny\n"}, []
    ),
    "an allow of clients, and a deny of paths": (
        {HOST: "[RULES]\n    Network 10.0.0.0/8\n    Action allow\n[RULES]\n    Match /a\n    Action deny\n"}, []
    ),
    "an allow of paths that the deny may have": (
        {HOST: "[RULES]\n    Match /a\n    Action allow\n[RULES]\n    Match ~b\n    Action deny\n"}, []
    ),
    "an allow of a path below that of the deny": (
        {HOST: "[RULES]\n    Match /a/b\n    Action allow\n[RULES]\n    Match /a/\n    Action deny\n"}, []
    ),
    "an allow and a deny": ({HOST: ALLOW + DENY}, []),
    "an allow, and a deny of all hosts": ({HOST: ALLOW, SERVER: ONE_LISTENER + DENY}, []),
    "scripts in the document root": (
        {HOST: "[CGI]\n    Match /cgi-bin\n    Root {root}\n"}, [(HOST, 5, 10, "warning", OWN_FOLDER)]
    ),
    "scripts above the document root": (
        {HOST: "[CGI]\n    Match /cgi-bin\n    Root {root}/..\n"}, [(HOST, 5, 10, "warning", OWN_FOLDER)]
    ),
    "a misspelt group": (
        {HOST: "[PROXY]\n    To http://appp\n", SERVER: GROUP},
        [(HOST, 4, 8, "warning", NO_GROUP)],
    ),
    "a misspelt group of scripts": (
        {HOST: "[FASTCGI]\n    To apq\n", SERVER: GROUP},
        [(HOST, 4, 8, "error", NO_GROUP_OF_SCRIPTS)],
    ),
    "a group with a port": (
        {HOST: "[PROXY]\n    To http://app:8080\n", SERVER: GROUP}, [(HOST, 4, 8, "warning", WITH_PORT)]
    ),
    "a group of scripts with a port": (
        {HOST: "[FASTCGI]\n    To app:8080\n", SERVER: GROUP}, [(HOST, 4, 8, "warning", WITH_PORT)]
    ),
    "a relative flag": (
        {HOST: "[MAINTENANCE]\n    FlagFile ../closed\n"},
        [(HOST, 4, 14, "warning", RELATIVE)],
    ),
    "a flag that would be a host": (
        {HOST: "[MAINTENANCE]\n    FlagFile closed\n"},
        [(HOST, 4, 14, "error", "{conf}/sites/closed " + IN_SITES)],
    ),
    "a socket that would be a host": (
        {SERVER: "[SERVER]\n    Listen 127.0.0.1:0\n    Listen unix:{conf}/sites/s\n"},
        [(SERVER, 3, 12, "error", "{conf}/sites/s " + IN_SITES)],
    ),
    "a shell among the hosts": (
        {SERVER: "[SERVER]\n    Listen 127.0.0.1:0\n[CHEETAH]\n    Listen {conf}/sites/s\n"},
        [(SERVER, 4, 12, "error", "{conf}/sites/s " + IN_SITES)],
    ),
    "a variable in braces for a backend": (
        {HOST: "[PROXY]\n    To http://127.0.0.1:1\n    RequestSet X-A a$$host\n    RequestSet X-B {host}$path\n"},
        [(HOST, 6, 16, "warning", 'a variable begins with a dollar: "{host}" is sent as it is; write $host')],
    ),
    "a variable in braces in a log": (
        {HOST: "[LOGGER]\n    AccessLog Off\n    Format $status {http.request.uri} $$host\n"},
        [(
            HOST, 5, 12, "warning",
            'a variable begins with a dollar: "{http.request.uri}" is written as it is; write $target',
        )],
    ),
    "files before backends": (
        {LOAD: "    Load liana\n    Load static\n    Load proxy\n"},
        [(LOAD, 4, 10, "warning", AFTER_STATIC.format("proxy"))],
    ),
    "files before scripts": (
        {LOAD: "    Load liana\n    Load static\n    Load cgi fastcgi\n"},
        [(LOAD, 4, col, "warning", AFTER_STATIC.format(name)) for name, col in (("cgi", 10), ("fastcgi", 14))],
    ),
    "[HEALTH] without paths": (
        {SERVER: ONE_LISTENER + "[HEALTH]\n"},
        [(SERVER, 3, 1, "warning", NO_PATHS)],
    ),
    "health at the only listener": (
        {SERVER: ONE_LISTENER + "[HEALTH]\n    LivenessPath /l\n    Listener 127.0.0.1:0\n"},
        [(SERVER, 5, 14, "warning", NOWHERE_ELSE)],
    ),
    "the status at the only listener": (
        {SERVER: ONE_LISTENER + "[STATUS]\n    Enabled On\n    Listener 127.0.0.1:0\n"},
        [(SERVER, 5, 14, "warning", NOWHERE_ELSE)],
    ),
    "the status and health at both listeners": (
        {
            SERVER: "[SERVER]\n    Listen 127.0.0.1:0\n    Listen 127.0.0.2:0\n[STATUS]\n    Enabled On\n"
            "    Listener 127.0.0.1:0\n[HEALTH]\n    LivenessPath /l\n    Listener 127.0.0.2:0\n"
        },
        [(SERVER, 6, 14, "warning", NOWHERE_ELSE)],
    ),
    "a log among the hosts": (
        {HOST: "[LOGGER]\n    AccessLog access.log\n    ErrorLog {conf}/logs/../sites/error.log\n"},
        [
            (HOST, 4, 15, "error", "{conf}/sites/access.log " + IN_SITES),
            (HOST, 5, 14, "error", "{conf}/logs/../sites/error.log " + IN_SITES),
        ],
    ),
    "a log beside the hosts": ({HOST: "[LOGGER]\n    AccessLog ../access.log\n"}, []),
    "files of the server among the hosts": (
        {SERVER: ONE_LISTENER + "    ErrorLog sites/error.log\n    PidFile sites/pid\n"},
        [
            (SERVER, 3, 14, "error", "{conf}/sites/error.log " + IN_SITES),
            (SERVER, 4, 13, "error", "{conf}/sites/pid " + IN_SITES),
        ],
    ),
    "an empty host": ({HOST: "#\n"}, [(HOST, 1, 1, "error", NO_HOST)]),
    "a host that begins with another section": (
        {HOST: "# a part\n[HEADERS]\n    Set X y\n"}, [(HOST, 2, 1, "error", NO_HOST)]
    ),
}  # fmt: skip


def add_head(file, text):
    if not text.startswith(("    ", "[")):
        return text
    sets_root = "DocumentRoot" in text or re.search(r"    (\S*\.)?(document-)?root ", text)
    return ("[HOST]\n" if sets_root else HEADS[file]) + text


@pytest.fixture
def check(tmp_path, site_root):
    def write(file, text):
        path = "sites/default" if file == HOST else file
        text = add_head(file, text).replace("{root}", str(site_root))
        write_config(tmp_path / "conf", site_root, files={path: text})
        return run("-c", tmp_path / "conf", "-t")

    return write


def test_names_as_in_urls(tmp_path):
    """Names of files may have what URLs have: such a file is tried, and is no mistake."""
    root = tmp_path / "www"
    root.mkdir()
    for name in ("a%20b.html", "c?d", "{e}.html"):
        (root / name).write_text(name)
    tries = "$path /c?d /{e}.html /a%20b.html"
    text = f"[HOST]\n    DocumentRoot {root}\n    Indexfile a%20b.html\n    TryFiles {tries}\n"
    write_config(tmp_path / "conf", root, files={"sites/default": text})
    result = run("-c", tmp_path / "conf", "-t")
    assert (result.returncode, PLACE.findall(result.stderr)) == (0, []), result.stderr


@pytest.mark.parametrize("case", CASES, ids=str)
def test_mistake(check, case, site_root):
    file, text, line, col, sentence = CASES[case]
    result = check(file, text)
    found = [
        (os.path.basename(m["file"]), int(m["line"]), int(m["col"]), m["text"]) for m in PLACE.finditer(result.stderr)
    ]
    assert result.returncode == 1, result.stderr
    assert found == [(file, line, col, sentence.replace("{root}", str(site_root)))], result.stderr


@pytest.mark.parametrize("case", REPORTS, ids=str)
def test_report(tmp_path, site_root, case):
    """What is wrong between lines: each is told with its place, and only errors refuse the configuration."""
    files, expected = REPORTS[case]

    def fill(text):
        return text.replace("{root}", str(site_root)).replace("{conf}", str(tmp_path / "conf"))

    texts = {
        "sites/default" if file == HOST else file: fill(text if text.startswith(WHOLE) else add_head(file, text))
        for file, text in files.items()
    }
    write_config(tmp_path / "conf", site_root, files=texts)
    (tmp_path / "conf/logs").mkdir()
    result = run("-c", tmp_path / "conf", "-t")
    found = [
        (os.path.basename(m["file"]), int(m["line"]), int(m["col"]), m["severity"], m["text"])
        for m in PLACE.finditer(result.stderr)
    ]
    found = [row for row in found if "has no address now" not in row[4]]
    assert found == [(*row[:4], fill(row[4])) for row in expected], result.stderr
    assert result.returncode == any(row[3] == "error" for row in expected), result.stderr
