// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [PROXY].
 */
#ifndef PROXY_CONF_H
#define PROXY_CONF_H

#include "fields.h"
#include "intercept.h"

#include <monkey/dial.h>
#include <monkey/pattern.h>
#include <monkey/plugin.h>
#include <monkey/response_parser.h>

enum proxy_path { PROXY_PATH_NORMALIZED, PROXY_PATH_RAW };
enum proxy_encoded_slash { PROXY_ENCODED_SLASH_REFUSE, PROXY_ENCODED_SLASH_KEEP };
enum proxy_forwarded { PROXY_FORWARDED_X, PROXY_FORWARDED_RFC7239, PROXY_FORWARDED_BOTH, PROXY_FORWARDED_OFF };
enum proxy_early_hints { PROXY_EARLY_HINTS_HTTP2, PROXY_EARLY_HINTS_ALL, PROXY_EARLY_HINTS_OFF };

enum proxy_client_leave { PROXY_CLIENT_LEAVE_CANCEL, PROXY_CLIENT_LEAVE_FINISH };
enum proxy_send_proxy { PROXY_SEND_PROXY_OFF, PROXY_SEND_PROXY_V1, PROXY_SEND_PROXY_V2 };

enum { PROXY_FIELDS_MAX = 128 }; /* headers of a response */

/* What `To` says. */
struct proxy_target {
    struct mk_str text;      /* as it was written */
    struct mk_str authority; /* of a URL: host and port, as the backend's Host has it; "localhost" for unix: */
    struct mk_str path;      /* that replaces the prefix of Match; without a slash at its end; `.p` NULL: none */
    const struct mk_dial_target *dial;
    bool is_tls; /* https:// */
};

/* The keys that begin with Tls. */
struct proxy_tls {
    struct mk_str name;                 /* that the certificate must cover; the host of `To` if it is not set */
    struct mk_str ca, certificate, key; /* absolute paths; empty: not set */
    bool verify;
};

/* What a response may leave in memory and in a file. */
struct proxy_buffer {
    uint64_t memory_bytes; /* 0: Off */
    uint64_t file_bytes;
};

/* A section; constant once the configuration is loaded. */
struct proxy_conf {
    struct mk_pattern match;
    struct proxy_target to;
    bool strip_prefix, rewrite_location;
    int path, encoded_slash, forwarded, early_hints, client_leave, send_proxy; /* enum proxy_path ... */
    struct mk_conf_list upgrade;   /* the protocols that requests may ask for */
    struct mk_str host_header;     /* "Client", "Backend" or a name */
    struct field_changes request;  /* RequestSet and RequestRemove */
    struct mk_conf_list send_file; /* absolute paths of folders */
    struct intercept intercept;
    struct proxy_tls tls;
    const struct mk_dial_target *source; /* the address to connect from; NULL: the kernel chooses it */
    struct proxy_buffer buffer;
    uint64_t spool_request_bytes; /* 0: Off; UINT64_MAX: On */
    uint64_t response_head_bytes_max;
    uint32_t connect_timeout_ms, response_timeout_ms, read_timeout_ms, send_timeout_ms, deadline_ms;
    int64_t keep_alive;
    uint32_t keep_alive_timeout_ms;
    struct mk_response_limits limits; /* of the parser */
};

/* [SPOOL], of the process. */
struct spool_conf {
    struct mk_str folder; /* empty: not set */
    uint64_t memory_bytes, disk_bytes;
    int64_t files;
};

enum { PROXY_SECTION, SPOOL_SECTION };
extern const struct mk_conf_section proxy_sections[];
extern const struct mk_conf_key spool_keys[];

/* Parse the values of BufferResponse and SpoolRequest (mk_conf_parse_fn). */
int spool_parse_buffer(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int spool_parse_request(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

#endif
