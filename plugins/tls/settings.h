// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [TLS], of the server and of each host. The structs live as long as the generation.
 */
#ifndef TLS_SETTINGS_H
#define TLS_SETTINGS_H

#include <monkey/plugin.h>

/* The files of a key that repeats, in the order of its lines. */
struct tls_paths {
    struct mk_str *items;
    uint32_t n;
};

struct tls_server_conf {
    struct mk_str ticket_keys;   /* a file; empty: the random keys of the process */
    uint32_t ticket_lifetime_ms; /* of sessions; a random key is used as long */
    bool ktls;                   /* use kTLS if the kernel supports it */
    bool self_signed;            /* make a certificate for the default host */
    /* for hosts that do not set them: */
    int profile;  /* enum tls_profile */
    int redirect; /* enum tls_redirect */
    struct mk_str hsts;
};

enum tls_profile { TLS_INTERMEDIATE, TLS_MODERN };
enum tls_client { TLS_CLIENT_OFF, TLS_CLIENT_OPTIONAL, TLS_CLIENT_REQUIRED };
enum tls_redirect { TLS_REDIRECT_OFF, TLS_REDIRECT_HTTPS };

struct tls_host_conf {
    struct tls_paths certificates, keys, chains, ocsp_files;
    int profile;   /* 0: that of the server; else enum tls_profile plus 1 */
    int client;    /* enum tls_client */
    int redirect;  /* 0: that of the server; else enum tls_redirect plus 1 */
    int64_t depth; /* of the chain of a client's certificate */
    struct mk_str client_ca;
    struct mk_str hsts; /* the value of Strict-Transport-Security; empty: none; `.p` NULL: that of the server */
};

/* The sections for struct mk_plugin. */
extern const struct mk_conf_section tls_sections[];

const struct tls_server_conf *settings_get_server(const struct mk_generation *g);
const struct tls_host_conf *settings_get_host(const struct mk_host *host);

/* What holds for a host: its own keys, else those of the server. */
enum tls_profile settings_profile(const struct tls_server_conf *server, const struct tls_host_conf *host);
enum tls_redirect settings_redirect(const struct tls_server_conf *server, const struct tls_host_conf *host);
struct mk_str settings_hsts(const struct tls_server_conf *server, const struct tls_host_conf *host);

/* Parses "365d includeSubDomains preload", or "Off", into the value of Strict-Transport-Security: mk_conf_parse_fn. */
int settings_parse_hsts(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

#endif
