# SPDX-License-Identifier: Apache-2.0
"""Tables of Apache: words that need no line here, words that cannot be said, and words that are one key."""

from .units import duration

PLUGIN = "a section loads its plugin"
TYPES = "the usual types are built in"
CIPHERS = "the profile intermediate is the default: TLS 1.2 and 1.3 with forward secrecy"
PROCESSES = "there is a worker for each processor"
REVERSED = "RewriteLocation is on: URLs of the backend become those of the host"
LISTS = "a list of a folder has its own look"
FOLDERS = "relative paths are those of the file"

UNNEEDED = {
    "loadmodule": PLUGIN, "addmodule": PLUGIN, "serverroot": FOLDERS, "serveradmin": "no page shows it",
    "serversignature": "pages of errors have no signature", "usecanonicalname": "the name is that of the request",
    "hostnamelookups": "names of clients are never looked up", "namevirtualhost": "hosts are found by their names",
    "accessfilename": "there are no .htaccess files", "typesconfig": TYPES, "addtype": TYPES, "mimemagicfile": TYPES,
    "addlanguage": TYPES, "addencoding": TYPES, "languagepriority": TYPES, "forcelanguagepriority": TYPES,
    "addcharset": TYPES, "adddefaultcharset": "texts are sent as UTF-8", "addicon": LISTS, "addiconbytype": LISTS,
    "addiconbyencoding": LISTS, "defaulticon": LISTS, "adddescription": LISTS, "readmename": LISTS,
    "headername": LISTS, "indexignore": LISTS, "indexoptions": LISTS, "indexstylesheet": LISTS,
    "startservers": PROCESSES, "minspareservers": PROCESSES, "maxspareservers": PROCESSES, "threadsperchild": PROCESSES,
    "minsparethreads": PROCESSES, "maxsparethreads": PROCESSES, "threadlimit": PROCESSES, "serverlimit": PROCESSES,
    "maxrequestworkers": "MaxConnections of [SERVER] is a limit", "maxconnectionsperchild": PROCESSES,
    "maxclients": "MaxConnections of [SERVER] is a limit", "maxrequestsperchild": PROCESSES, "mutex": PROCESSES,
    "enablesendfile": "files are sent with sendfile() where it is of use", "enablemmap": "files are read as is best",
    "fileetag": "files have an ETag", "contentdigest": "it is off", "traceenable": "TRACE is 405",
    "protocols": "HTTP/2 is on", "protocolshonororder": "HTTP/2 is on", "h2direct": "HTTP/2 is on",
    "sslciphersuite": CIPHERS, "sslhonorcipherorder": CIPHERS, "sslsessioncache": "clients resume their sessions with "
    "tickets", "sslsessiontickets": "clients resume their sessions with tickets", "sslcompression": CIPHERS,
    "sslopensslconfcmd": CIPHERS, "sslrandomseed": CIPHERS, "sslsessioncachetimeout": "clients resume their sessions "
    "with tickets", "sslusestapling": "OCSPFile of [TLS] names a response, if there is one",
    "sslstaplingcache": "OCSPFile of [TLS] names a response, if there is one", "ssloptions": "applications get the "
    "variables of TLS", "sslpassphrasedialog": "keys have no password here", "sslproxyengine": "https:// in To is TLS",
    "sslproxycheckpeername": "the certificate of a backend is verified", "sslproxycheckpeercn": "the certificate of a "
    "backend is verified", "sslproxycheckpeerexpire": "the certificate of a backend is verified",
    "browsermatch": "no client needs it", "setenvifnocase": "no client needs it", "proxyrequests": "it is off",
    "proxypassreverse": REVERSED, "proxypassreversecookiepath": REVERSED, "proxypassreversecookiedomain": REVERSED,
    "proxyaddheaders": "X-Forwarded-For and others are always sent", "proxyvia": "Via is sent to backends",
    "rewriteengine": "a section [REWRITE] or [REDIRECT] is enough", "rewritebase": "paths are those of the host",
    "rewriteoptions": "paths are those of the host", "expiresactive": "a key Expires is enough",
    "deflatecompressionlevel": "GzipLevel of [COMPRESS] is 4", "logformat": "each log has its Format",
    "multiviewsmatch": "names are those of files", "coredumpdirectory": "CoreDumps of [SERVER] decides",
    "extendedstatus": "[STATUS] counts", "allowencodedslashes": "EncodedSlash of a section decides",
    "directoryslash": "it is on", "loglevel": "LogLevel of [SERVER] is info",
    "defaultruntimedir": FOLDERS, "limitrequestfields": "MaxHeaders of [SERVER] is 100",
    "limitrequestline": "MaxRequestLine of [SERVER] is 8K", "limitrequestfieldsize": "MaxHeadSize of [SERVER] is 16K",
    "define": "its value stands where it is used", "authbasicprovider": "users are in a file", "requestreadtimeout":
    "Timeout and MinBodyRate of [SERVER] are limits", "proxywebsocketfallbacktoproxyhttp": "WebSocket works without a "
    "line", "documentrootcheck": FOLDERS, "action": PLUGIN,
    "brotlicompressionquality": "BrotliLevel of [COMPRESS] is 4",
}
UNKNOWN = {
    "setenv": "Params of [FASTCGI] and Env of [CGI] set variables", "passenv": "Env of [CGI] sets variables",
    "setenvif": "there are no variables that depend on requests", "rewritemap": "there are no maps",
    "substitute": "bodies are not changed", "addoutputfilter": "bodies are not changed",
    "setoutputfilter": "bodies are not changed", "dav": "there is no WebDAV: another server does that, behind [PROXY]",
    "svnpath": "there is no SVN",
    "cacheenable": "there is no cache of responses", "wsgiscriptalias": "let the application speak HTTP, for [PROXY]",
    "wsgidaemonprocess": "let the application speak HTTP, for [PROXY]", "passengerenabled": "let the application speak "
    "HTTP, for [PROXY]", "php_value": "php-fpm has the settings of PHP", "php_flag": "php-fpm has the settings of PHP",
    "php_admin_value": "php-fpm has the settings of PHP", "php_admin_flag": "php-fpm has the settings of PHP",
    "addhandler": "programs run in [CGI], or in [FASTCGI] if they are servers", "secrule": "there is no firewall of "
    "applications: [RULES] has conditions", "aliasmatch": "[ALIAS] is for a prefix or for one path",
    "scriptaliasmatch": "[CGI] is for a prefix", "limitexcept": "write When method in [RULES]", "limit": "write When "
    "method in [RULES]", "suexecusergroup": "scripts run as the user of the server", "if": "there are no expressions: "
    "When of [RULES], [REDIRECT] and [RESPOND] has conditions", "elseif": "there are no expressions", "else": "there "
    "are no expressions", "authdigestprovider": "logins are Basic, Bearer or Forward",
    "rewritelock": "there are no maps",
}
SERVER_ROWS = {
    "user": ("User", str), "group": ("Group", str), "keepalivetimeout": ("KeepAliveTimeout", duration),
    "maxkeepaliverequests": ("MaxKeepAliveRequest", str), "keepalive": ("KeepAlive", str.capitalize),
    "timeout": ("SendTimeout", duration),
}
TLS_ROWS = {"sslcertificatefile": "Certificate", "sslcertificatekeyfile": "CertificateKey",
            "sslcertificatechainfile": "CertificateChain", "sslcacertificatefile": "ClientCA"}
VERIFY = {"require": "Required", "optional": "Optional", "none": None}
GLOBS = {"text/css": "*.css", "application/javascript": "*.js", "text/javascript": "*.js", "image/png": "*.png",
         "image/jpeg": "*.jpg", "image/jpg": "*.jpg", "image/gif": "*.gif", "image/webp": "*.webp", "image/svg+xml":
         "*.svg", "image/x-icon": "*.ico", "text/html": "*.html", "application/pdf": "*.pdf", "font/woff2": "*.woff2",
         "font/woff": "*.woff", "application/json": "*.json", "application/x-javascript": "*.js"}
CODES = {"permanent": "301", "temp": "302", "seeother": "303", "gone": "410"}
BALANCE = {"byrequests": (("Balance", "RoundRobin"),), "bytraffic": (), "bybusyness": (), "heartbeat": ()}
STANDARD_HEADERS = {"host", "x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port",
                    "upgrade", "connection", "x-forwarded-ssl"}
