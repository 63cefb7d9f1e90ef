# SPDX-License-Identifier: Apache-2.0
"""Tables of nginx: words that need no line here, words that cannot be said, and words that are one row of a section."""

from .units import duration, size

SOCKETS = "the server sets the options of its sockets"
BUFFERS = "buffers have the size that they need"
CIPHERS = "the profile intermediate is the default: TLS 1.2 and 1.3 with forward secrecy"
SESSIONS = "clients resume their sessions with tickets"
STAPLING = "OCSPFile of [TLS] names a response, if there is one"
COMPRESSING = "all is decided by the type of a response, and Vary is always sent"
HEADERS_SET = "Host is that of the client, and X-Forwarded-For, X-Real-IP and others are always sent"
UPGRADES = "WebSocket works without a line, and connections to the backend are kept"
TYPES = "the usual types are built in"
KEPT = "files that are asked for often are kept open"

UNNEEDED = {
    "sendfile": "files are sent with sendfile() where it is of use", "tcp_nopush": SOCKETS, "tcp_nodelay": SOCKETS,
    "sendfile_max_chunk": SOCKETS, "aio": "files are read by threads if they are not in memory", "directio": KEPT,
    "multi_accept": "each worker accepts what waits", "use": "it is epoll", "accept_mutex": "each worker has a socket",
    "worker_connections": "connections are limited by descriptors; MaxConnections of [SERVER] is another limit",
    "types_hash_max_size": BUFFERS, "types_hash_bucket_size": BUFFERS, "server_names_hash_bucket_size": BUFFERS,
    "server_names_hash_max_size": BUFFERS, "variables_hash_max_size": BUFFERS, "map_hash_bucket_size": BUFFERS,
    "client_body_buffer_size": BUFFERS, "client_header_buffer_size": BUFFERS, "large_client_header_buffers": BUFFERS,
    "output_buffers": BUFFERS, "postpone_output": BUFFERS, "reset_timedout_connection": SOCKETS,
    "open_file_cache": KEPT, "open_file_cache_valid": KEPT, "open_file_cache_min_uses": KEPT,
    "open_file_cache_errors": KEPT, "log_not_found": "a missing file is no line of the error log",
    "charset": "texts are sent as UTF-8", "etag": "files have an ETag", "types": TYPES,
    "load_module": "a section loads its plugin", "pcre_jit": "expressions are compiled if they can be",
    "ssl_ciphers": CIPHERS, "ssl_prefer_server_ciphers": CIPHERS, "ssl_ecdh_curve": CIPHERS, "ssl_dhparam": CIPHERS,
    "ssl_session_cache": SESSIONS, "ssl_session_timeout": SESSIONS, "ssl_session_tickets": SESSIONS,
    "ssl_stapling": STAPLING, "ssl_stapling_verify": STAPLING, "ssl_trusted_certificate": STAPLING,
    "ssl_buffer_size": "the size of records follows the connection", "ssl_early_data": "there is no early data",
    "http2": "HTTP/2 is on", "http2_max_concurrent_streams": "HTTP/2 has its limits",
    "gzip_vary": COMPRESSING, "gzip_proxied": COMPRESSING, "gzip_disable": COMPRESSING, "gzip_buffers": COMPRESSING,
    "gzip_http_version": COMPRESSING,
    "proxy_http_version": UPGRADES, "proxy_cache_bypass": "there is no cache of responses",
    "proxy_no_cache": "there is no cache of responses", "proxy_buffers": BUFFERS, "proxy_buffer_size": BUFFERS,
    "proxy_busy_buffers_size": BUFFERS, "proxy_max_temp_file_size": BUFFERS, "proxy_temp_file_write_size": BUFFERS,
    "proxy_headers_hash_max_size": BUFFERS, "proxy_headers_hash_bucket_size": BUFFERS,
    "proxy_ssl_server_name": "the name is sent", "proxy_ssl_session_reuse": "sessions are resumed",
    "proxy_pass_request_headers": HEADERS_SET, "proxy_socket_keepalive": SOCKETS,
    "fastcgi_buffers": BUFFERS, "fastcgi_buffer_size": BUFFERS, "fastcgi_busy_buffers_size": BUFFERS,
    "fastcgi_temp_file_write_size": BUFFERS, "fastcgi_split_path_info": "Split of [FASTCGI] is .php",
    "fastcgi_index": "Indexfile names the script of a folder", "fastcgi_keep_conn": UPGRADES,
    "underscores_in_headers": "headers with underscores are passed on", "server_name_in_redirect": "it is off",
    "port_in_redirect": "redirects of folders are relative", "absolute_redirect": "redirects of folders are relative",
    "merge_slashes": "it is on", "if_modified_since": "dates are compared", "limit_req_log_level": "it is info",
    "keepalive": UPGRADES, "keepalive_time": UPGRADES, "zone": "the workers share what they know of a group",
    "real_ip_recursive": "it is on", "worker_cpu_affinity": "Affinity of [SERVER] would do this",
    "worker_priority": "the service manager sets it", "daemon": "the service manager decides",
    "master_process": "Supervisor of [SERVER] would do this", "ssl_session_ticket_key": SESSIONS,
    "recursive_error_pages": "it is off", "limit_conn_log_level": "it is info", "limit_conn_status": "it is 429",
    "chunked_transfer_encoding": "it is on", "msie_padding": COMPRESSING,
    "ssi": "it is off", "autoindex_exact_size": "a list of a folder has its own look", "autoindex_localtime":
    "a list of a folder has its own look", "autoindex_format": "a client that asks for JSON gets it",
    "proxy_store": "it is off",
}
NO_CACHE = "there is no cache of responses: a program such as Varnish, or the application, keeps them"
UNKNOWN = {
    "limit_rate_after": "SendRate holds from the first byte on",
    "map": "there are no variables that depend on others", "geo": "there are no variables that depend on addresses",
    "split_clients": "there are no variables that depend on others", "set": "there are no variables",
    "sub_filter": "bodies are not changed", "uwsgi_pass": "there is no uwsgi: let the application speak HTTP, FastCGI "
    "or SCGI, for [PROXY], [FASTCGI] or [SCGI]", "grpc_pass": "there is no gRPC to backends",
    "memcached_pass": "there is no memcached as a backend", "proxy_cache": NO_CACHE, "proxy_cache_path": NO_CACHE,
    "proxy_cache_valid": NO_CACHE, "proxy_cache_key": NO_CACHE, "proxy_cache_use_stale": NO_CACHE,
    "proxy_cache_methods": NO_CACHE, "proxy_cache_lock": NO_CACHE, "proxy_cache_revalidate": NO_CACHE,
    "proxy_cache_background_update": NO_CACHE, "proxy_cache_min_uses": NO_CACHE, "fastcgi_cache": NO_CACHE,
    "fastcgi_cache_path": NO_CACHE, "fastcgi_cache_key": NO_CACHE, "fastcgi_cache_valid": NO_CACHE,
    "fastcgi_cache_use_stale": NO_CACHE, "stream": "only HTTP is passed on", "mail": "only HTTP is passed on",
    "proxy_cookie_path": "Path of cookies is mapped by RewriteLocation", "mirror": "requests are not copied",
    "proxy_cookie_domain": "Domain of cookies is mapped by RewriteLocation",
    "add_before_body": "bodies are not changed", "add_after_body": "bodies are not changed",
    "dav_methods": "there is no WebDAV: another server does that, behind [PROXY]",
    "auth_jwt": "write [AUTH] with Type Bearer and Keys", "perl": "there are no programs in the server",
    "secure_link": "there are no signed links", "valid_referers": "write [RULES] with ForeignReferer On",
    "image_filter": "bodies are not changed", "proxy_bind": "write SourceAddress in [PROXY]",
    "ssl_crl": "revoked client certificates are not looked for", "ssl_password_file": "keys have no password here",
    "proxy_next_upstream": "Retry of [UPSTREAM] says when another server is tried",
    "fastcgi_next_upstream": "Retry of [UPSTREAM] says when another server is tried",
    "env": "the service manager sets variables of the environment",
}

# one row of a setting: the kind of setting, the key, and what makes the value of the first argument
ROWS = {
    "client_max_body_size": ("limits", "MaxBodySize", lambda text: "1024G" if size(text) == "0" else size(text)),
    "client_body_timeout": ("limits", "BodyTimeout", duration),
    "send_timeout": ("limits", "SendTimeout", duration),
    "proxy_connect_timeout": ("proxy", "ConnectTimeout", duration),
    "proxy_read_timeout": ("proxy", "ReadTimeout", lambda text: duration(text, 86400)),
    "proxy_send_timeout": ("proxy", "SendTimeout", lambda text: duration(text, 86400)),
    "proxy_ssl_name": ("proxy", "TlsName", str),
    "proxy_ssl_trusted_certificate": ("proxy", "TlsCA", str),
    "proxy_ssl_certificate": ("proxy", "TlsCertificate", str),
    "proxy_ssl_certificate_key": ("proxy", "TlsKey", str),
    "proxy_ssl_verify": ("proxy", "TlsVerify", lambda text: text.capitalize()),
    "fastcgi_connect_timeout": ("fastcgi", "ConnectTimeout", duration),
    "fastcgi_read_timeout": ("fastcgi", "ReadTimeout", lambda text: duration(text, 86400)),
    "fastcgi_send_timeout": ("fastcgi", "SendTimeout", lambda text: duration(text, 86400)),
    "auth_basic_user_file": ("auth", "Users", str),
    "gzip_min_length": ("gzip", "MinSize", size),
    "gzip_comp_level": ("gzip", "GzipLevel", str),
    "limit_rate": ("clients", "SendRate", size),
}
SERVER_ROWS = {  # of [SERVER]
    "pid": ("PidFile", str),
    "worker_processes": ("Workers", lambda text: None if text == "auto" else text),
    "worker_rlimit_nofile": ("FDLimit", str),
    "keepalive_timeout": ("KeepAliveTimeout", duration),
    "keepalive_requests": ("MaxKeepAliveRequest", str),
    "client_header_timeout": ("Timeout", duration),
    "real_ip_header": ("RealIPHeader", lambda text: text if text in ("X-Forwarded-For", "Forwarded") else None),
    "set_real_ip_from": ("TrustedProxies", lambda text: text.replace("unix:", "unix")),
}
TLS_ROWS = {
    "ssl_certificate": "Certificate",
    "ssl_certificate_key": "CertificateKey",
    "ssl_client_certificate": "ClientCA",
}
DEFAULT_ROWS = {("proxy", "ReadTimeout", "60s"), ("fastcgi", "ReadTimeout", "60s"), ("proxy", "SendTimeout", "60s"),
                ("fastcgi", "SendTimeout", "60s")}

VARIABLES = {  # of requests, in values that may have them
    "remote_addr": "client", "binary_remote_addr": "client", "realip_remote_addr": "peer", "remote_user": "user",
    "host": "host", "http_host": "host", "server_name": "host", "request_id": "request_id", "request": "request",
    "ssl_client_s_dn": "tls_client", "ssl_protocol": "tls_version", "ssl_cipher": "tls_cipher",
    "request_method": "method", "status": "status", "time_iso8601": "time_iso8601", "time_local": "time_clf",
    "body_bytes_sent": "body_bytes_out", "bytes_sent": "bytes_out", "request_length": "bytes_in",
    "request_uri": "target", "uri": "path", "document_uri": "path", "args": "query", "query_string": "query",
    "server_protocol": "protocol", "http_referer": "referer", "http_user_agent": "agent",
    "upstream_addr": "upstream", "upstream_status": "upstream_status",
}
STANDARD_HEADERS = {"host", "x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "upgrade",
                    "connection", "x-forwarded-port", "x-request-id", "x-forwarded-server", "x-forwarded-scheme",
                    "x-forwarded-ssl", "accept-encoding", "x-url-scheme", "x-scheme", "via", "forwarded",
                    "x-original-forwarded-for", "x-forwarded-protocol"}
STANDARD_PARAMS = {"SCRIPT_FILENAME", "PATH_INFO", "QUERY_STRING", "REQUEST_METHOD", "CONTENT_TYPE", "CONTENT_LENGTH",
                   "SCRIPT_NAME", "REQUEST_URI", "DOCUMENT_URI", "DOCUMENT_ROOT", "SERVER_PROTOCOL", "REQUEST_SCHEME",
                   "HTTPS", "GATEWAY_INTERFACE", "SERVER_SOFTWARE", "REMOTE_ADDR", "REMOTE_PORT", "SERVER_ADDR",
                   "SERVER_PORT", "SERVER_NAME", "REDIRECT_STATUS", "PATH_TRANSLATED", "REMOTE_USER", "HTTP_PROXY",
                   "HTTP_HOST"}
BALANCE = {  # of an upstream
    "least_conn": (), "random": (), "ip_hash": (("Balance", "Hash"),), "least_time": (),
}
HASH_BY = {"$request_uri": "Url", "$uri": "Path", "$remote_addr": "Client", "$binary_remote_addr": "Client"}
COMPRESSED = ("text/", "application/json", "application/javascript", "application/x-javascript", "application/xml",
              "application/rss+xml", "application/atom+xml", "image/svg+xml", "application/wasm", "font/ttf",
              "font/otf",
              "application/vnd.ms-fontobject", "image/bmp", "image/x-icon", "image/vnd.microsoft.icon",
              "application/xhtml+xml", "application/ld+json", "application/manifest+json", "application/rtf")
