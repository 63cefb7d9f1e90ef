// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of other servers' names (conf/foreign_words.h).
 */
#include "conf/foreign_words.h"

#define FOR_PHP "PHP runs in [FASTCGI], and php-fpm has its settings"
#define HIDE_VERSION "write \"HideVersion On\" in [SERVER], in monkey.conf"
#define A_PLUGIN NOT_NEEDED("a section loads its plugin")
#define SOME_PATHS "a section for some paths has a line Match, such as [HEADERS], [AUTH], [ALIAS] and [RULES]"
#define A_TYPE "write \"EXTENSION TYPE\" in [MIMETYPES] of monkey.mime"
#define NOT_NEEDED(what) "leave it out: " what

/*
 * Rows: a line, two lines of a section, the name of a section, and a phrase. A word may have a value behind a blank,
 * and stands before the word alone then. Each is four strings in a row, because an
 * array of pointers would take three times the memory, and a relocation for each.
 */
#define LINES(word, section, here, also) word "\0" section "\0" here "\0" also "\0"
#define LINE(word, section, here) LINES(word, section, here, "")
#define SECTION(word, section) LINES(word, section, "", "")
#define PHRASE(word, phrase) LINES(word, "", phrase, "")

// clang-format off
static const char keys[] =
    /* the server as a whole */
    LINE("worker_processes", "SERVER", "Workers 0")
    LINE("worker_connections", "SERVER", "MaxConnections NUMBER")
    LINE("MaxRequestWorkers", "SERVER", "MaxConnections NUMBER")
    LINE("MaxClients", "SERVER", "MaxConnections NUMBER")
    LINE("ThreadsPerChild", "SERVER", "Workers 0")
    LINE("server.max-connections", "SERVER", "MaxConnections NUMBER")
    LINE("worker_rlimit_nofile", "SERVER", "FDLimit NUMBER")
    LINE("server.max-fds", "SERVER", "FDLimit NUMBER")
    LINE("pid", "SERVER", "PidFile FILE")
    LINE("server.pid-file", "SERVER", "PidFile FILE")
    LINE("server.username", "SERVER", "User NAME")
    LINE("server.groupname", "SERVER", "Group NAME")
    LINE("server.port", "SERVER", "Listen PORT")
    LINE("bind", "SERVER", "Listen PORT")
    LINE("server.bind", "SERVER", "Listen ADDRESS:PORT")
    LINE("http_port", "SERVER", "Listen PORT")
    LINE("https_port", "SERVER", "Listen PORT tls")
    LINE("error_log", "SERVER", "ErrorLog FILE")
    LINE("server.errorlog", "SERVER", "ErrorLog FILE")
    LINE("MasterLog", "SERVER", "ErrorLog FILE")
    PHRASE("server_tokens", HIDE_VERSION)
    PHRASE("ServerTokens", HIDE_VERSION)
    PHRASE("ServerSignature", HIDE_VERSION)
    PHRASE("server.tag", HIDE_VERSION)
    LINE("keepalive_timeout", "SERVER", "KeepAliveTimeout 5s")
    LINE("keepalive_requests", "SERVER", "MaxKeepAliveRequest NUMBER")
    LINE("MaxKeepAliveRequests", "SERVER", "MaxKeepAliveRequest NUMBER")
    LINE("client_header_timeout", "SERVER", "Timeout 15s")
    LINE("client_body_timeout", "SERVER", "BodyTimeout 30s")
    LINE("send_timeout", "SERVER", "SendTimeout 30s")
    LINE("client_max_body_size", "SERVER", "MaxBodySize 10M")
    LINE("LimitRequestBody", "SERVER", "MaxBodySize 10M")
    LINE("server.max-request-size", "SERVER", "MaxBodySize 10M")
    LINE("default_type", "SERVER", "DefaultMimeType TYPE")
    LINE("set_real_ip_from", "SERVER", "TrustedProxies NETWORK")
    LINE("RemoteIPTrustedProxy", "SERVER", "TrustedProxies NETWORK")
    LINE("real_ip_header", "SERVER", "RealIPHeader X-Forwarded-For")
    LINE("RemoteIPHeader", "SERVER", "RealIPHeader X-Forwarded-For")
    LINE("http2", "HTTP2", "Enabled On")
    PHRASE("server.modules", A_PLUGIN)
    PHRASE("LoadModule", A_PLUGIN)
    PHRASE("load_module", A_PLUGIN)
    PHRASE("types", A_TYPE)
    PHRASE("AddType", A_TYPE)
    PHRASE("mimetype.assign", A_TYPE)
    PHRASE("include", "write @INCLUDE FILE at the start of a line")
    PHRASE("IncludeOptional", "write @INCLUDE FILE at the start of a line")
    PHRASE("import", "write @INCLUDE FILE at the start of a line")
    PHRASE("include_shell", "write @INCLUDE FILE at the start of a line")
    PHRASE("Define", "write @SET NAME=VALUE at the start of a line")
    PHRASE("ServerRoot", NOT_NEEDED("relative paths start at the folder of the file that has them"))
    PHRASE("sendfile", NOT_NEEDED("files are sent with sendfile() where it is of use"))
    PHRASE("tcp_nopush", NOT_NEEDED("the server sets the options of its sockets"))
    PHRASE("tcp_nodelay", NOT_NEEDED("the server sets the options of its sockets"))
    PHRASE("multi_accept", NOT_NEEDED("each worker accepts what waits"))
    PHRASE("HostnameLookups", NOT_NEEDED("names of clients are never looked up"))
    PHRASE("AllowOverride", NOT_NEEDED("there are no .htaccess files"))
    PHRASE("NameVirtualHost", NOT_NEEDED("each file of sites/ is a host"))
    PHRASE("charset", NOT_NEEDED("texts are sent as UTF-8"))
    PHRASE("dav_methods", "there is no WebDAV: another server does that, behind [PROXY]")
    PHRASE("ServerAdmin", NOT_NEEDED("no page shows it"))

    /* a host and its files */
    LINE("root", "HOST", "DocumentRoot FOLDER")
    LINE("server.document-root", "HOST", "DocumentRoot FOLDER")
    LINE("server_name", "HOST", "ServerName NAME")
    LINE("server.name", "HOST", "ServerName NAME")
    PHRASE("ServerAlias", "write all names in the line ServerName of [HOST]")
    LINE("index", "HOST", "Indexfile index.html")
    LINE("DirectoryIndex", "HOST", "Indexfile index.html")
    LINE("index-file.names", "HOST", "Indexfile index.html")
    LINE("try_files", "HOST", "TryFiles $path /index.html")
    LINE("FallbackResource", "HOST", "TryFiles $path /index.html")
    LINE("FollowSymLinks", "HOST", "SymLink Inside")
    PHRASE("disable_symlinks", "write \"SymLink Off\" in [HOST], in a file of sites/")
    LINE("gzip_static", "HOST", "Precompressed gzip")
    LINE("brotli_static", "HOST", "Precompressed br")
    PHRASE("location", SOME_PATHS)
    PHRASE("handle", SOME_PATHS)
    PHRASE("handle_path", SOME_PATHS)
    PHRASE("route", SOME_PATHS)
    PHRASE("file_server", NOT_NEEDED("files below DocumentRoot are served"))
    LINES("alias", "ALIAS", "Match PATH", "To FOLDER")
    LINES("alias.url", "ALIAS", "Match PATH", "To FOLDER")
    LINE("autoindex", "HOST", "Listing On")
    LINE("dir-listing.activate", "DIRLISTING", "Enabled On")
    LINE("IndexOptions", "DIRLISTING", "Enabled On")
    PHRASE("Options", "lists of folders are the section [DIRLISTING], symbolic links the key SymLink")
    LINE("error_page", "ERROR_PAGES", "404 /404.html")
    LINE("ErrorDocument", "ERROR_PAGES", "404 /404.html")
    LINE("handle_errors", "ERROR_PAGES", "404 /404.html")
    LINE("server.error-handler-404", "ERROR_PAGES", "404 /404.html")

    /* plugins */
    LINE("add_header", "HEADERS", "Set NAME VALUE")
    LINE("Header", "HEADERS", "Set NAME VALUE")
    LINE("setenv.add-response-header", "HEADERS", "Set NAME VALUE")
    LINE("expires", "HEADERS", "Expires 30d")
    LINE("ExpiresDefault", "HEADERS", "Expires 30d")
    LINE("ExpiresByType", "HEADERS", "Expires 30d")
    LINE("ExpiresActive", "HEADERS", "Expires 30d")
    LINES("return 200", "RESPOND", "Match PATH", "Text TEXT")
    LINES("return 204", "RESPOND", "Match PATH", "Status 204")
    LINES("return 403", "RULES", "Match PATH", "Action deny")
    LINES("return 404", "RULES", "Match PATH", "Action deny 404")
    LINES("return 410", "RULES", "Match PATH", "Action deny 410")
    LINES("return 444", "RULES", "Match PATH", "Action drop")
    LINES("respond", "RESPOND", "Match PATH", "Text TEXT")
    LINES("http-request return", "RESPOND", "Match PATH", "Text TEXT")
    LINES("return", "REDIRECT", "Match PATH", "To TARGET")
    LINES("redir", "REDIRECT", "Match PATH", "To TARGET")
    LINES("RedirectMatch", "REDIRECT", "Match ~EXPRESSION", "To TARGET")
    LINES("RedirectPermanent", "REDIRECT", "Match PATH", "To TARGET")
    LINES("url.redirect", "REDIRECT", "Match PATH", "To TARGET")
    LINES("rewrite", "REWRITE", "Match ~EXPRESSION", "To PATH")
    LINES("RewriteRule", "REWRITE", "Match ~EXPRESSION", "To PATH")
    LINE("RewriteCond", "REWRITE", "When CONDITION")
    PHRASE("RewriteEngine", NOT_NEEDED("a section [REWRITE] or [REDIRECT] is enough"))
    LINES("url.rewrite-once", "REWRITE", "Match ~EXPRESSION", "To PATH")
    LINE("access_log", "LOGGER", "AccessLog FILE")
    LINE("CustomLog", "LOGGER", "AccessLog FILE")
    LINE("TransferLog", "LOGGER", "AccessLog FILE")
    LINE("accesslog.filename", "LOGGER", "AccessLog FILE")
    LINE("log", "LOGGER", "AccessLog FILE")
    LINE("option httplog", "LOGGER", "AccessLog FILE")
    LINE("log_format", "LOGGER", "Format combined")
    LINE("LogFormat", "LOGGER", "Format combined")
    LINE("gzip", "HOST", "Compress On")
    LINE("brotli", "COMPRESS", "Codings br")
    LINE("encode", "HOST", "Compress On")
    LINE("gzip_types", "COMPRESS", "Types TYPE")
    LINE("gzip_comp_level", "COMPRESS", "GzipLevel NUMBER")
    LINE("gzip_min_length", "COMPRESS", "MinSize BYTES")
    LINE("open_file_cache", "CACHE", "Memory 32M")
    LINE("ssl_certificate", "TLS", "Certificate FILE")
    LINE("SSLCertificateFile", "TLS", "Certificate FILE")
    LINE("ssl.pemfile", "TLS", "Certificate FILE")
    LINE("ssl_certificate_key", "TLS", "CertificateKey FILE")
    LINE("SSLCertificateKeyFile", "TLS", "CertificateKey FILE")
    LINE("ssl.privkey", "TLS", "CertificateKey FILE")
    LINE("RSAKeyFile", "TLS", "CertificateKey FILE")
    PHRASE("DHParameterFile", NOT_NEEDED("keys are exchanged by elliptic curves"))
    LINE("SSLCertificateChainFile", "TLS", "CertificateChain FILE")
    LINE("ssl_client_certificate", "TLS", "ClientCA FILE")
    LINE("SSLCACertificateFile", "TLS", "ClientCA FILE")
    LINE("ssl_protocols", "TLS", "Profile NAME")
    LINE("ssl_ciphers", "TLS", "Profile NAME")
    LINE("SSLProtocol", "TLS", "Profile NAME")
    LINE("SSLCipherSuite", "TLS", "Profile NAME")
    LINE("MinVersion", "TLS", "Profile NAME")
    LINE("ssl_verify_client", "TLS", "ClientCertificate Required")
    LINE("SSLVerifyClient", "TLS", "ClientCertificate Required")
    PHRASE("ssl", "write \"Listen 443 tls\" in [SERVER] of monkey.conf")
    PHRASE("SSLEngine", "write \"Listen 443 tls\" in [SERVER] of monkey.conf")
    PHRASE("ssl.engine", "write \"Listen 443 tls\" in [SERVER] of monkey.conf")
    LINE("tls", "TLS", "Certificate FILE")
    LINE("auth_basic", "AUTH", "Realm NAME")
    LINE("auth_basic_user_file", "AUTH", "Users FILE")
    LINE("auth_request", "AUTH", "Type Forward")
    LINE("forward_auth", "AUTH", "Type Forward")
    LINE("AuthName", "AUTH", "Realm NAME")
    LINE("AuthType", "AUTH", "Type basic")
    LINE("AuthUserFile", "AUTH", "Users FILE")
    LINE("basicauth", "AUTH", "Users FILE")
    LINE("basic_auth", "AUTH", "Users FILE")
    PHRASE("Require", "networks are the section [RULES], users the section [AUTH]")
    LINES("allow", "RULES", "Network NETWORK", "Action allow")
    LINES("deny", "RULES", "Network NETWORK", "Action deny")
    LINES("Order", "RULES", "Network NETWORK", "Action deny")
    LINE("limit_req", "CLIENT_LIMITS", "Rate NUMBER/s")
    LINE("limit_req_zone", "CLIENT_LIMITS", "Rate NUMBER/s")
    LINE("rate_limit", "CLIENT_LIMITS", "Rate NUMBER/s")
    LINE("limit_conn", "CLIENT_LIMITS", "MaxRequests NUMBER")
    LINE("limit_conn_zone", "CLIENT_LIMITS", "MaxRequests NUMBER")
    LINE("limit_rate", "CLIENT_LIMITS", "SendRate BYTES")
    LINE("stub_status", "STATUS", "Enabled On")
    LINES("proxy_pass", "PROXY", "Match /PATH", "To http://HOST:PORT")
    LINES("proxy.server", "PROXY", "Match /PATH", "To http://HOST:PORT")
    LINES("reverse_proxy", "PROXY", "Match /PATH", "To http://HOST:PORT")
    LINES("ProxyPass", "PROXY", "Match /PATH", "To http://HOST:PORT")
    LINES("default_backend", "PROXY", "Match /PATH", "To http://GROUP")
    LINES("use_backend", "PROXY", "Match /PATH", "To http://GROUP")
    PHRASE("acl", "conditions are the line Match of [PROXY] and others, and Match, Network and When of [RULES]")
    LINE("resolver", "UPSTREAM", "NameServer ADDRESS")
    LINE("ProxyPreserveHost", "PROXY", "HostHeader Client")
    LINE("ProxyPassReverse", "PROXY", "RewriteLocation On")
    LINE("proxy_redirect", "PROXY", "RewriteLocation On")
    LINE("proxy_read_timeout", "PROXY", "ReadTimeout TIME")
    LINE("proxy_connect_timeout", "PROXY", "ConnectTimeout TIME")
    PHRASE("proxy_set_header", "[PROXY] sends X-Forwarded-For and others by itself, and Host as HostHeader says")

    /* what there is not */
    LINE("fastcgi_pass", "FASTCGI", "To unix:/PATH")
    LINE("fastcgi.server", "FASTCGI", "To unix:/PATH")
    LINE("php_fastcgi", "HOST", "PHP unix:/PATH")
    LINES("scgi_pass", "SCGI", "Match /PATH", "To HOST:PORT")
    PHRASE("uwsgi_pass", "there is no uwsgi: the application is for [PROXY] by HTTP, or for [FASTCGI] or [SCGI]")
    PHRASE("SetHandler", "programs run in [CGI], or in [FASTCGI] and [SCGI] if they are servers")
    LINES("ScriptAlias", "CGI", "Match /PATH", "Root FOLDER")
    PHRASE("php_value", FOR_PHP)
    PHRASE("php_flag", FOR_PHP)
    ;

static const char sections[] =
    SECTION("VHOST", "HOST")
    SECTION("VIRTUALHOST", "HOST")
    SECTION("VIRTUAL_HOST", "HOST")
    SECTION("SITE", "HOST")
    SECTION("HTTP", "SERVER")
    SECTION("GLOBAL", "SERVER")
    SECTION("MAIN", "SERVER")
    SECTION("SSL", "TLS")
    SECTION("HTTPS", "TLS")
    SECTION("GZIP", "COMPRESS")
    SECTION("DEFLATE", "COMPRESS")
    SECTION("COMPRESSION", "COMPRESS")
    SECTION("LOG", "LOGGER")
    SECTION("LOGS", "LOGGER")
    SECTION("LOGGING", "LOGGER")
    SECTION("ACCESS_LOG", "LOGGER")
    SECTION("AUTOINDEX", "DIRLISTING")
    SECTION("LISTING", "DIRLISTING")
    SECTION("MIME", "MIMETYPES")
    SECTION("TYPES", "MIMETYPES")
    SECTION("ERRORS", "ERROR_PAGES")
    SECTION("ERROR", "ERROR_PAGES")
    SECTION("ACCESS", "RULES")
    SECTION("FIREWALL", "RULES")
    SECTION("SECURITY", "RULES")
    SECTION("MANDRIL", "RULES")
    SECTION("RATE_LIMIT", "CLIENT_LIMITS")
    PHRASE("LOCATION", SOME_PATHS)
    PHRASE("DIRECTORY", SOME_PATHS)
    SECTION("PROXY_REVERSE", "PROXY")
    SECTION("PROXY_ENTRY", "PROXY")
    SECTION("PROXY_DEFAULTS", "UPSTREAM")
    SECTION("NODE", "UPSTREAM")
    SECTION("FASTCGI_SERVER", "UPSTREAM")
    SECTION("FASTCGI_LOCATION", "FASTCGI")
    PHRASE("PALM", "programs run in [CGI], or in [FASTCGI] and [SCGI] if they are servers")
    PHRASE("PHP", FOR_PHP)
    ;
// clang-format on

static const char *take_string(const char **at)
{
    const char *string = *at;
    *at += strlen(string) + 1;
    return string;
}

/* Returns whether a row's word is the name, or the name and the value behind a blank. */
static bool is_line(struct mk_str word, struct mk_str name, struct mk_str value)
{
    struct mk_str first = mk_str_until(word, " ");
    return mk_str_ieq(first, name) && (first.len == word.len || mk_str_eq(mk_str_after(word, first.len + 1), value));
}

/* An empty string ends the rows. */
static bool find_word(const char *rows, struct mk_str name, struct mk_str value, struct mk__foreign_word *ret)
{
    while (*rows) {
        *ret = (struct mk__foreign_word){.word = take_string(&rows)};
        ret->section = take_string(&rows);
        ret->here = take_string(&rows);
        ret->also = take_string(&rows);
        if (is_line(mk_str_c(ret->word), name, value))
            return true;
    }
    return false;
}

bool mk__foreign_words_find_key(struct mk_str name, struct mk_str value, struct mk__foreign_word *ret)
{
    return find_word(keys, name, value, ret);
}

bool mk__foreign_words_find_section(struct mk_str name, struct mk__foreign_word *ret)
{
    return find_word(sections, mk_str_until(name, " \t"), MK_STR_NONE, ret);
}

struct mk_str mk__foreign_words_key(const struct mk__foreign_word *word)
{
    return mk_str_until(mk_str_c(word->here), " \t");
}
