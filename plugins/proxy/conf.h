// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [PROXY].
 */
#ifndef PROXY_CONF_H
#define PROXY_CONF_H

#include "fields.h"

#include <monkey/kit/gateway.h>

enum proxy_path { PROXY_PATH_NORMALIZED, PROXY_PATH_RAW };
enum proxy_forwarded { PROXY_FORWARDED_X, PROXY_FORWARDED_RFC7239, PROXY_FORWARDED_BOTH, PROXY_FORWARDED_OFF };
enum proxy_early_hints { PROXY_EARLY_HINTS_HTTP2, PROXY_EARLY_HINTS_ALL, PROXY_EARLY_HINTS_OFF };

enum proxy_send_proxy { PROXY_SEND_PROXY_OFF, PROXY_SEND_PROXY_V1, PROXY_SEND_PROXY_V2 };

/* A section; constant once the configuration is loaded. */
struct proxy_conf {
    struct mk_gateway_conf gateway; /* the path of `to` replaces the prefix of Match; it has no slash at its end */
    bool strip_prefix, rewrite_location;
    int path, encoded_slash, forwarded, early_hints, send_proxy; /* enum proxy_path ... */
    struct mk_conf_list upgrade;                                 /* the protocols that requests may ask for */
    struct mk_str host_header;                                   /* "Client", "Backend" or a name */
    struct field_changes request;                                /* RequestSet and RequestRemove */
    int32_t trace_share;                                         /* of requests, in millionths; or TRACE_OFF */
    uint64_t via_seed;                                           /* <monkey/kit/via.h> */
};

/* Returns the section of a request. */
static inline const struct proxy_conf *proxy_conf_of(const struct mk_gateway_call *c)
{
    return (const struct proxy_conf *)c->conf;
}

extern const struct mk_conf_section proxy_sections[];

#endif
