// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of `Type Forward`: the server that is asked about each request, and what its answer changes.
 */
#ifndef AUTH_FORWARD_CONF_H
#define AUTH_FORWARD_CONF_H

#include <monkey/conf.h>
#include <monkey/target.h>

enum { FORWARD_HEADERS_MAX = 16 };

/* Names of headers, of which no two are the same when `_` is read as `-`. */
struct forward_names {
    struct mk_str items[FORWARD_HEADERS_MAX];
    uint32_t n;
};

/* The keys of a section; constant once the configuration is loaded. */
struct forward_conf {
    struct mk_target to; /* the path begins with a slash, and may have a query */
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
