// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of `Type Forward`: the server that is asked about each request, and what its answer changes.
 */
#ifndef AUTH_FORWARD_CONF_H
#define AUTH_FORWARD_CONF_H

#include <monkey/conf.h>
#include <monkey/dial.h>

enum { FORWARD_HEADERS_MAX = 16 };

/* What `To` says. */
struct forward_target {
    struct mk_str text;      /* as it was written; `.p` NULL: not set */
    struct mk_str authority; /* host and port, as Host has them; "localhost" for unix: */
    struct mk_str path;      /* begins with a slash, and may have a query */
    const struct mk_dial_target *dial;
    bool is_tls; /* https:// */
};

/* Names of headers, of which no two are the same when `_` is read as `-`. */
struct forward_names {
    struct mk_str items[FORWARD_HEADERS_MAX];
    uint32_t n;
};

/* The keys of a section; constant once the configuration is loaded. */
struct forward_conf {
    struct forward_target to;
    struct forward_names copy, cache_by;
    struct mk_str user_header; /* empty: not set */
    uint32_t timeout_ms, cache_ms;
    bool set_cookie;
    bool tls_verify;
    struct mk_str tls_name, tls_ca; /* empty: not set */
};

/* Parse the values of the keys (mk_conf_parse_fn): a target, the names of headers, the name of one. */
int forward_parse_to(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int forward_parse_names(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int forward_parse_name(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

/* Returns true if a name is in a list, with `_` as `-`. */
bool forward_names_have(const struct forward_names *names, struct mk_str name);

#endif
