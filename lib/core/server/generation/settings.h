// SPDX-License-Identifier: Apache-2.0
/*
 * The core's directives: the rows of [SERVER], [HOST], [MIMETYPES] and [PLUGINS], and the structs that they fill, which
 * live as long as the generation.
 */
#ifndef MK_SERVER_SETTINGS_H
#define MK_SERVER_SETTINGS_H

#include <monkey/conf.h>

#include "http/context.h"
#include "net/listen.h"
#include "server/generation/user.h"

struct mk__listener;

/* How the connections of a listener are treated. */
struct mk__listen_mode {
    const struct mk_transport *transport; /* set when the plugins are loaded */
    bool proxy;                           /* each connection begins with a PROXY protocol header */
};

struct mk__listen_conf {
    struct mk__addr addr;
    struct mk_str text;      /* the address as it was written; that of several, if it is a name */
    uint32_t line;           /* which Listen line it is of, from 0 */
    bool reserved;           /* a plugin alone has it: mk_host_reserve_listeners() */
    bool accept_in_drain;    /* health checks are answered until a drain ends; set by host_start */
    struct mk_str transport; /* the transport's name; empty: TransportLayer */
    struct mk__listen_mode mode;
    struct mk__listen_rights rights;     /* of a Unix socket */
    const struct mk__listener *listener; /* its sockets; set by mk__listeners_prepare() */
};

struct mk__listen_confs {
    struct mk__listen_conf *items;
    uint32_t n;
};

/* OverCapacity: what happens to new connections when a limit is reached. */
enum mk__over_capacity { MK__OVER_CAPACITY_RESIST, MK__OVER_CAPACITY_DROP, MK__OVER_CAPACITY_TOO_BUSY };

/* Scheduler: whether the workers or the control thread accept. */
enum mk__scheduler { MK__SCHEDULER_REUSEPORT, MK__SCHEDULER_FAIR };

struct mk__settings {
    struct mk__listen_confs listen;
    int64_t workers, disk_threads;
    struct mk__http_limits limits;
    uint32_t shutdown_timeout_ms, shutdown_delay_ms;
    bool keep_alive, hide_version, server_header;
    int64_t requests_max, headers_max, backlog, fast_open;
    uint64_t send_buffer_bytes, not_sent_bytes;
    uint64_t line_bytes_max, head_bytes_max, memory_bytes_max;
    uint32_t defer_accept_ms;
    struct mk_str error_log, pid_file, transport, default_type;
    int log_level;
    int scheduler, over_capacity;
    bool affinity;
    int64_t connections_max, descriptors_max, handshakes_max;
    struct mk__user user, group;
    bool supervisor, core_dumps;
    struct mk_networks trusted_proxies;
    int real_ip_header; /* X-Forwarded-For or Forwarded: an enum of settings.c */
};

struct mk__host_settings {
    struct mk_conf_list names;
    struct mk_conf_list listeners; /* where it answers; empty: everywhere */
    struct mk__http_limits limits; /* the host's own; 0: the server's */
};

/* The rows of the limits of [HOST] and [LIMITS]: LIMIT(kind, field of struct mk__http_limits, name, further members).
 */
#define MK__LIMIT_KEYS(LIMIT) \
    LIMIT(DURATION, timeout_ms[MK__TIMEOUT_BODY], "BodyTimeout", .min = 100, .max = 3600000, .unit = "s"), \
        LIMIT(SIZE, body_rate_min, "MinBodyRate", .min = 1, .unit = "B"), \
        LIMIT(DURATION, timeout_ms[MK__TIMEOUT_HANDLER], "HandlerTimeout", .min = 100, .max = 86400000, .unit = "s"), \
        LIMIT(DURATION, timeout_ms[MK__TIMEOUT_SEND], "SendTimeout", .min = 100, .max = 3600000, .unit = "s"), \
        LIMIT(SIZE, collect_bytes_max, "MaxRequestSize", .min = 1, .max = 1 << 30, .unit = "K"), \
        LIMIT(SIZE, body_bytes_max, "MaxBodySize", .min = 1, .unit = "B"), \
        LIMIT(SIZE, discard_bytes_max, "MaxDiscardSize", .min = 1, .unit = "B")

/* One line of [HANDLERS]. */
struct mk__handler {
    struct mk_pattern match;
    struct mk_str plugin;
    unsigned index; /* of the plugin in the generation */
};

struct mk__handlers {
    struct mk__handler *items;
    uint32_t n;
};

/* [PLUGINS] of plugins.load. */
struct mk__plugin_list {
    struct mk_conf_list load;
};

extern const struct mk_conf_section mk__section_server, mk__section_host, mk__section_mimetypes, mk__section_plugins,
    mk__section_http2;

/* Returns which Listen line a listener is of, from 0: a line with a name may be several. */
static inline uint32_t mk__settings_listen_line(const struct mk__settings *s, uint32_t nth)
{
    return s->listen.items[nth].line;
}

/* Returns the first listener whose address is written like this, or NULL. */
struct mk__listen_conf *mk__settings_find_listener(const struct mk__settings *s, struct mk_str text);
/* Fills in the settings of HTTP, which refer to `s`. */
MK_COLD void mk__settings_http(const struct mk__settings *s, struct mk__http_settings *ret);
/* Replaces those limits that `own`, of [HOST] or [LIMITS], sets; 0: it does not. */
MK_COLD void mk__settings_limits(const struct mk__http_limits *own, struct mk__http_limits *limits);

#endif
