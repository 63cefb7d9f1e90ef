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
};

enum tls_profile { TLS_INTERMEDIATE, TLS_MODERN };
enum tls_client { TLS_CLIENT_OFF, TLS_CLIENT_OPTIONAL, TLS_CLIENT_REQUIRED };
enum tls_redirect { TLS_REDIRECT_OFF, TLS_REDIRECT_HTTPS };

struct tls_host_conf {
    struct tls_paths certificates, keys, chains, ocsp_files;
    int profile;   /* enum tls_profile */
    int client;    /* enum tls_client */
    int redirect;  /* enum tls_redirect */
    int64_t depth; /* of the chain of a client's certificate */
    struct mk_str client_ca;
    struct mk_str hsts; /* the value of Strict-Transport-Security; empty: none */
};

/* The sections for struct mk_plugin. */
extern const struct mk_conf_section tls_sections[];

const struct tls_server_conf *settings_get_server(const struct mk_generation *g);
const struct tls_host_conf *settings_get_host(const struct mk_host *host);

/* Parses "365d includeSubDomains preload" into the value of Strict-Transport-Security; an mk_conf_parse_fn. */
int settings_parse_hsts(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

#endif
