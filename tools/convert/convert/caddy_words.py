# SPDX-License-Identifier: Apache-2.0
"""Tables of Caddy: words that need no line, words that cannot be said, and the order of directives."""

ACME = "another program gets certificates"
GLOBAL = {
    "email": ACME, "acme_ca": ACME, "acme_dns": ACME, "acme_ca_root": ACME, "on_demand_tls": ACME, "key_type": ACME,
    "local_certs": "a host without a certificate has a self-signed one", "skip_install_trust": ACME,
    "ocsp_stapling": ACME,
    "admin": "monkey shell shows and controls the server", "order": "the order of sections does not matter",
    "grace_period": "ShutdownTimeout of [SERVER] is 10 s", "persist_config": "files alone have the configuration",
    "storage": ACME, "cert_issuer": ACME, "renew_interval": ACME, "storage_clean_interval": ACME,
}
UNNEEDED = {
    "bind_default": "all addresses", "acme_server": ACME,
}
UNKNOWN = {
    "templates": "bodies are not changed", "map": "there are no variables that depend on others",
    "vars": "there are no variables", "push": "there is no server push", "invoke": "there are no named routes",
    "handle_errors": "write [ERROR_PAGES], with a file or a text for each status",
    "intercept": "write InterceptErrors in [PROXY]", "method": "the method of a request stays",
    "request_header": "RequestSet of [PROXY] sets a header for a backend", "tracing": "write TraceSample in [PROXY]",
    "metrics": "write [STATUS] with Enabled On and MetricsPath", "fs": "files are those of the system",
    "log_append": "write Format in [LOGGER]", "log_skip": "write Except in [LOGGER]", "skip_log": "write Except in "
    "[LOGGER]", "uri": "a path is changed by [REWRITE]", "error": "write [RESPOND] with Status",
}

# In which order Caddy does what its directives say, whatever their order in the file is.
ORDER = ("root", "header", "request_body", "redir", "rewrite", "uri", "try_files", "basicauth", "basic_auth",
         "forward_auth", "encode", "handle", "handle_path", "route", "abort", "error", "respond", "reverse_proxy",
         "php_fastcgi", "file_server")

BALANCE = {
    "random": (), "least_conn": (), "random_choose": (), "round_robin": (("Balance", "RoundRobin"),),
    "first": (("Balance", "First"),), "ip_hash": (("Balance", "Hash"),), "client_ip_hash": (("Balance", "Hash"),),
    "uri_hash": (("Balance", "Hash"), ("HashBy", "Url")), "cookie": (("Balance", "Sticky"),),
    "weighted_round_robin": (("Balance", "RoundRobin"),),
}
STANDARD_HEADERS = {"host", "x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port",
                    "upgrade", "connection"}
VARIABLES = {
    "{remote_host}": "$client", "{http.request.remote.host}": "$client", "{host}": "$host", "{method}": "$method",
    "{uri}": "$target", "{path}": "$path", "{query}": "$query", "{http.auth.user.id}": "$user",
    "{http.request.host}": "$host", "{client_ip}": "$client",
}
PROXY_UNNEEDED = {
    "flush_interval": "event streams are never kept", "health_passes": "CheckUp is 2", "lb_try_interval": "RetryTime "
    "of [UPSTREAM] says it", "buffer_requests": "SpoolRequest would do this", "stream_timeout": "TunnelTimeout of "
    "[SERVER] says it", "trusted_proxies": "TrustedProxies of [SERVER] names them", "lb_try_duration": "RetryTime of "
    "[UPSTREAM] is 10 s", "to": "",
}
