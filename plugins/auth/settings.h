// SPDX-License-Identifier: Apache-2.0
/*
 * The sections of the plugin: [AUTH] of hosts, of which the first that matches a path is used, and [AUTH_LIMITS] of the
 * server. Structs and strings live as long as the generation.
 */
#ifndef AUTH_SETTINGS_H
#define AUTH_SETTINGS_H

#include <monkey/plugin.h>

#include "claims.h"
#include "forward_conf.h"
#include "keys.h"

extern const struct mk_plugin mk_plugin_auth;

enum auth_type { AUTH_OFF, AUTH_BASIC, AUTH_BEARER, AUTH_FORWARD };
enum auth_satisfy { AUTH_ALL, AUTH_ANY };
enum auth_require_kind { AUTH_REQUIRE_VALID, AUTH_REQUIRE_USER, AUTH_REQUIRE_GROUP };

/* A line `Require user ada bob`: one of them. */
struct auth_require {
    struct auth_require *next;
    enum auth_require_kind kind;
    struct mk_conf_list names;
};

/* Lines of `Keys` or `Secret`, of `Claim`. */
struct auth_key_files {
    struct keys_file *items;
    uint32_t n;
};

struct auth_claims {
    struct claims_need *items;
    uint32_t n;
};

struct auth_conf {
    struct mk_pattern match;
    int type, satisfy; /* enum auth_type, enum auth_satisfy */
    struct mk_str realm, users, groups;
    struct auth_require *require; /* NULL: valid */
    bool client_certificate, allow_preflight;
    struct auth_key_files keys, secrets;
    struct mk_conf_list issuers, audiences, scopes;
    struct auth_claims claims;
    uint32_t leeway_ms;
    bool expiry_required;
    struct forward_conf forward;
};

struct auth_limits {
    int64_t threads, queue, failures, questions;
    uint32_t cache_ms, delay_ms, failures_ms;
};

extern const struct mk_conf_section auth_sections[];

/* Return the first [AUTH] of the host, and the next one; NULL: there is none. */
const struct auth_conf *settings_first(const struct mk_host *host);
const struct auth_conf *settings_next(const struct mk_host *host, const struct auth_conf *conf);
const struct auth_limits *settings_limits(const struct mk_generation *g);

/* Checks that no section of the host is covered by one before it. Returns 0 or -errno, reported. */
int settings_check_order(struct mk_host *host);

#endif
