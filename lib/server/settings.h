// SPDX-License-Identifier: Apache-2.0
/*
 * The core's own directives: the rows of [SERVER], [HOST], [MIMETYPES] and [PLUGINS], and the structs that
 * they fill. Lives by the clock of the generation.
 */
#ifndef MK_SERVER_SETTINGS_H
#define MK_SERVER_SETTINGS_H

#include <monkey/conf.h>

#include "http/context.h"
#include "net/addr.h"

struct mk__listener;

/* How the connections of a listener are treated. */
struct mk__listen_mode {
    const struct mk_transport *transport; /* that carries them; known once the plugins are */
    bool proxy;                           /* each begins with a header of the PROXY protocol */
};

struct mk__listen_conf {
    struct mk__addr addr;
    struct mk_str text;      /* the address as it was written */
    bool accept_in_drain;    /* until a drain ends; set while the hosts are prepared */
    struct mk_str transport; /* the name of what carries its connections; empty: what TransportLayer says */
    struct mk__listen_mode mode;
    const struct mk__listener *listener; /* its sockets; known once they are prepared */
};

struct mk__listen_confs {
    struct mk__listen_conf *items;
    uint32_t n;
};

/* What becomes of connections that come when there is no room. */
enum mk__over_capacity { MK__OVER_CAPACITY_RESIST, MK__OVER_CAPACITY_DROP, MK__OVER_CAPACITY_TOO_BUSY };

/* Who accepts. */
enum mk__scheduler { MK__SCHEDULER_REUSEPORT, MK__SCHEDULER_FAIR };

/* A user or a group; without a name there is none. */
struct mk__user {
    struct mk_str name;
    uint32_t id, group; /* the latter is a user's own */
};

struct mk__settings {
    struct mk__listen_confs listen;
    int64_t workers, disk_threads;
    uint32_t head_timeout_ms, body_timeout_ms, idle_timeout_ms, send_timeout_ms, handler_timeout_ms, linger_timeout_ms,
        shutdown_timeout_ms;
    uint32_t shutdown_delay_ms, tunnel_timeout_ms, handshake_timeout_ms;
    bool keep_alive, hide_version, server_header;
    int64_t requests_max, headers_max, backlog, fast_open;
    uint64_t send_buffer_bytes, not_sent_bytes;
    uint64_t body_rate_min, line_bytes_max, head_bytes_max, collect_bytes_max, body_bytes_max, discard_bytes_max,
        memory_bytes_max;
    uint32_t defer_accept_ms;
    struct mk_str error_log, pid_file, transport, default_type;
    int log_level;
    int scheduler, over_capacity;
    bool affinity;
    int64_t connections_max, descriptors_max, handshakes_max;
    struct mk__user user, group;
    bool supervisor;
    struct mk_networks trusted_proxies;
    int real_ip_header; /* an index of the fields' names */
};

struct mk__host_settings {
    struct mk_conf_list names;
    struct mk__http_limits limits; /* those that differ from the server's; the others are zero */
};

/* One line of [HANDLERS]. */
struct mk__handler {
    struct mk_pattern match;
    struct mk_str plugin;
    unsigned index; /* of the plugin, in its generation */
};

struct mk__handlers {
    struct mk__handler *items;
    uint32_t n;
};

/* [PLUGINS] of plugins.load. */
struct mk__plugin_list {
    struct mk_conf_list load;
};

extern const struct mk_conf_section mk__section_server, mk__section_host, mk__section_mimetypes, mk__section_plugins;

/* The listener of that text; NULL: there is none. */
struct mk__listen_conf *mk__settings_find_listener(const struct mk__settings *s, struct mk_str text);
/* What HTTP needs of it. */
void mk__settings_http(const struct mk__settings *s, struct mk__http_settings *ret);
/* Replaces the server's limits by those that a host has of its own. */
void mk__settings_limits(const struct mk__host_settings *s, struct mk__http_limits *limits);

#endif
