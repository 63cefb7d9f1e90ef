// SPDX-License-Identifier: Apache-2.0
/*
 * Passes requests to another server (the backend) and its responses to the clients: what all protocols between them
 * have in common. It chooses the server, keeps connections, sends the request, reads the response, and limits each
 * wait; it tries again where that is safe, buffers bodies, counts, and reports failures. A protocol is a const table of
 * functions, which know the bytes.
 *
 *     start        mk_gateway_new ─► the state of the plugin's start
 *     host_start   mk_gateway_open_routes: what the sections of a host need
 *     request      mk_gateway_pass ─► begin ─► (body, if it is received first) ─► connection ─► write_head, frames
 *                  ─► unwrap, parse_head ─► check_head, pass_head ─► body, as the client takes it ─► the connection is
 *                  kept or closed
 *
 * The hooks of the plugin call functions of this header, or are such functions. The state of its start is the gateway,
 * and that of its workers is what mk_gateway_start_worker() returns. In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_GATEWAY_H
#define MONKEY_GATEWAY_H

#include "../base/pattern.h"
#include "../base/response_parser.h"
#include "../conf.h"
#include "../counters.h"
#include "../program.h"
#include "hash_table.h"
#include "status_set.h"
#include "target.h"

MK_C_BEGIN

struct mk_command_call;
struct mk_gateway; /* of the process */
struct mk_gateway_protocol;
struct mk_gateway_generation; /* of a generation */
struct mk_gateway_route;      /* of a section of a host */
struct mk_source_query;       /* <monkey/kit/source.h> */

enum {
    MK_GATEWAY_FIELDS_MAX = 128,           /* headers of a response */
    MK_GATEWAY_HEAD_BYTES_MAX = 60 * 1024, /* of its head: with the server's own lines the core sends 64 KB */
    MK_GATEWAY_LOOP = 508, /* the status of a request that comes back without end; it is not sent to another server */
};

/* ── the configuration ── */

enum mk_gateway_client_abort { MK_GATEWAY_CLIENT_ABORT_CANCEL, MK_GATEWAY_CLIENT_ABORT_FINISH };

/* What a response may leave in memory and in a file. */
struct mk_gateway_buffer {
    uint64_t memory_bytes; /* 0: Off */
    uint64_t file_bytes;
};

/* TLS to the backend. */
struct mk_gateway_tls {
    struct mk_str name;                 /* that the certificate must cover; the host of `To` if it is not set */
    struct mk_str ca, certificate, key; /* absolute paths; empty: not set */
    bool verify;
};

enum { MK_GATEWAY_KEEP_QUEUE = -1 }; /* `KeepAlive Queue` */

/* What a section says of the passing on. The struct of the section begins with it. Constant once it is loaded. */
struct mk_gateway_conf {
    struct mk_pattern match;
    struct mk_target to;
    bool is_spawned; /* the plugin starts the server */
    struct mk_gateway_tls tls;
    const struct mk_dial_target *source; /* the address to connect from; NULL: the kernel chooses it */
    struct mk_gateway_buffer buffer;
    uint64_t spool_request_bytes; /* 0: Off; UINT64_MAX: On */
    int client_abort;             /* enum mk_gateway_client_abort */
    uint64_t response_head_bytes_max;
    uint32_t connect_timeout_ms, response_timeout_ms, read_timeout_ms, send_timeout_ms, deadline_ms;
    int64_t keep_alive; /* or MK_GATEWAY_KEEP_QUEUE */
    uint32_t keep_alive_timeout_ms;
    struct mk_conf_list send_file;  /* absolute paths of folders */
    struct mk_status_set intercept; /* responses that become pages of this server */
    struct mk_response_limits limits;
};

/* Parse the values of keys (mk_conf_parse_fn): KeepAlive, BufferResponse, SpoolRequest, SendFile, InterceptErrors. */
MK_API int mk_gateway_parse_keep_alive(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                       struct mk_buf *error);
MK_API int mk_gateway_parse_buffer(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                   struct mk_buf *error);
MK_API int mk_gateway_parse_spool(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                  struct mk_buf *error);
MK_API int mk_gateway_parse_send_file(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                      struct mk_buf *error);
MK_API int mk_gateway_parse_intercept(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                      struct mk_buf *error);
/* Sets what follows from other keys; in the section's check. */
MK_API void mk_gateway_conf_finish(struct mk_gateway_conf *conf);

extern const char *const mk_gateway_client_abort_names[];

/* Rows for the keys of a section whose struct `owner` has a struct mk_gateway_conf as `field`: about bodies and waits.
 */
#define MK_GATEWAY_KEYS_BODIES(owner, field, spool_default) \
    MK_CONF_KEY_CUSTOM(owner, field.buffer, "BufferResponse", "256K 64M", \
                       "How much of a response is kept for a client that does not take it, so that it does not hold " \
                       "the backend: so many bytes in memory, and then so many in a file (see `[SPOOL]`; without the " \
                       "second size: none). What the client takes at once is not kept, nor are event streams. `Off`: " \
                       "the backend waits for the client.", \
                       .unit = "size size, or Off", .parse = mk_gateway_parse_buffer), \
        MK_CONF_KEY_CUSTOM(owner, field.spool_request_bytes, "SpoolRequest", spool_default, \
                           "Whether the body of a request is received as a whole, in memory and then in a file (see " \
                           "`[SPOOL]`), before a connection to the backend is made, so that a slow client does not " \
                           "hold it: `On`, or the length up to which bodies are accepted; a longer one is 413.", \
                           .unit = "Off, On or size", .parse = mk_gateway_parse_spool), \
        MK_CONF_KEY_ENUM(owner, field.client_abort, "OnClientLeave", "Cancel", \
                         "What becomes of a request whose client leaves before it has got the response: the " \
                         "connection to the backend is closed (`Cancel`), or a request of which the backend has a " \
                         "part already, and this server all, is brought to its end, and its response is dropped " \
                         "(`Finish`).", \
                         .names = mk_gateway_client_abort_names), \
        MK_CONF_KEY_SIZE(owner, field.response_head_bytes_max, "MaxResponseHead", "32K", \
                         "How long the head of a response may be; a longer one is 502.", .min = 1024, \
                         .max = MK_GATEWAY_HEAD_BYTES_MAX), \
        MK_CONF_KEY_DURATION(owner, field.connect_timeout_ms, "ConnectTimeout", "3s", \
                             "How long a connection to the backend may take, with the lookup of its name and the TLS " \
                             "handshake; then 504.", \
                             .min = 1, .max = 3600000, .unit = "s"), \
        MK_CONF_KEY_DURATION(owner, field.response_timeout_ms, "ResponseTimeout", "60s", \
                             "How long the backend may take from the end of the request to the head of its response; " \
                             "then 504.", \
                             .min = 1, .max = 86400000, .unit = "s"), \
        MK_CONF_KEY_DURATION(owner, field.read_timeout_ms, "ReadTimeout", "60s", \
                             "How long the backend may send nothing in the body of its response; then the response " \
                             "is cut.", \
                             .min = 1, .max = 86400000, .unit = "s"), \
        MK_CONF_KEY_DURATION(owner, field.send_timeout_ms, "SendTimeout", "30s", \
                             "How long the backend may take no byte of a request; then 504.", .min = 1, \
                             .max = 86400000, .unit = "s"), \
        MK_CONF_KEY_DURATION(owner, field.deadline_ms, "Deadline", "0", \
                             "How long an exchange with the backend may take in all; 0: no limit.", .min = 0, \
                             .max = 86400000, .unit = "s")

/* The same, about connections that are kept. */
#define MK_GATEWAY_KEYS_CONNECTIONS(owner, field, kept_default) \
    MK_CONF_KEY_CUSTOM(owner, field.keep_alive, "KeepAlive", kept_default, \
                       "How many idle connections to the backend each worker keeps; more are kept for a " \
                       "second, those of requests at the same time. 0: none. `Queue`: none, but a request that " \
                       "waits in the `Queue` of the group in the same thread takes over the connection of the one " \
                       "that has ended.", \
                       .unit = "number up to 10000, or Queue", .parse = mk_gateway_parse_keep_alive), \
        MK_CONF_KEY_DURATION(owner, field.keep_alive_timeout_ms, "KeepAliveTimeout", "4s", \
                             "How long such a connection is kept. It should be less than the backend's own time.", \
                             .min = 1, .max = 3600000, .unit = "s")

/* The same, about responses that this server replaces. */
#define MK_GATEWAY_KEYS_RESPONSES(owner, field) \
    MK_CONF_KEY_CUSTOM(owner, field.send_file, "SendFile", NULL, \
                       "Folders of files that the backend may have this server send, in place of its response: with " \
                       "`X-Accel-Redirect` or `X-Sendfile`. `Off`: none.", \
                       .unit = "folder ...", .parse = mk_gateway_parse_send_file), \
        MK_CONF_KEY_CUSTOM(owner, field.intercept, "InterceptErrors", NULL, \
                           "Which responses of the backend become error pages of this server, with the same status: " \
                           "`On` (400 and above), statuses such as `502 503`, or `Off`.", \
                           .unit = "status ...", .parse = mk_gateway_parse_intercept)

/* ── a protocol ── */

/* A request, as the functions of its protocol see it. */
struct mk_gateway_call {
    struct mk_request *req; /* NULL: the client has left, and the request is brought to its end (OnClientLeave) */
    const struct mk_gateway_protocol *protocol;
    const struct mk_gateway_conf *conf;
    const void *arg; /* of mk_gateway_pass() */
    void *state;     /* of the protocol, zeros at first; it may be moved in memory, and needs no release */
    struct mk_loop *loop;
    const struct mk_host *host;
    struct mk_str server; /* of a group, as its line names it; empty: none. Valid until the last head was passed on */
    bool keeps_conn;      /* another request may use the connection (KeepAlive) */
    bool is_upgrade;      /* set by begin(): the request asks for another protocol, which follows its body */
    bool has_trailers;    /* set by begin(): write_trailers() is called after the body */
};

enum mk_gateway_body_kind { MK_GATEWAY_BODY_NONE, MK_GATEWAY_BODY_LENGTH, MK_GATEWAY_BODY_CHUNKED };

/* How the body of a request comes. */
struct mk_gateway_body {
    enum mk_gateway_body_kind kind;
    uint64_t bytes;   /* of MK_GATEWAY_BODY_LENGTH */
    bool is_received; /* as a whole: the client needs no invitation */
};

enum { MK_GATEWAY_FRAME_BYTES = 24 };
/* How pieces of a body are framed. */
struct mk_gateway_frames {
    size_t piece_max;
    /* Writes what stands before a piece of `len` bytes. Returns the number of bytes. Pure. */
    size_t (*begin)(char to[MK_GATEWAY_FRAME_BYTES], size_t len);
    struct mk_str piece_end, body_end;
};

/* The head of a response; the strings of the fields are parts of `bytes`. Valid during the call. */
struct mk_gateway_head {
    const struct mk_response_parser *parser;
    const struct mk_field *fields; /* parser->n_fields */
    struct mk_str bytes;
};

/* Functions that may be NULL are so marked: (opt). */
struct mk_gateway_protocol {
    const char *name;   /* of log lines */
    size_t state_bytes; /* of mk_gateway_call.state */
    bool needs_length;  /* of a body before its first byte: one in chunks is received first */
    const struct mk_gateway_frames *length_frames, *chunked_frames; /* of bodies with a length and others; NULL: none */
    struct mk_str abort; /* is sent before a connection is closed in the midst of an exchange; may be empty */

    /*
     * (opt) Prepares a request. Returns 0 or the status of the response; MK_GATEWAY_LOOP: it has passed here before, so
     * no server gets it.
     */
    int (*begin)(struct mk_gateway_call *c);
    /* (opt) Writes the bytes that each new connection begins with. One that has some serves one client only. */
    void (*write_preamble)(const struct mk_gateway_call *c, struct mk_buf *out);
    /*
     * Writes the head, also for a further connection, with which the state begins anew. Returns 0, -EINVAL (the
     * client's request is wrong: 400, and its connection is closed), -ENOMEM (503) or -ENOBUFS (it does not fit: 431).
     */
    int (*write_head)(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out);
    /* (opt) Returns what stands after the body in place of body_end; valid until the exchange ends. `.p` NULL: that.
     */
    struct mk_str (*write_trailers)(const struct mk_gateway_call *c);

    /*
     * (opt) Takes what the protocol has around the response out of `*len` bytes, in place; `*len` becomes what is left.
     * Returns 0 (more follows), 1 (the response has ended; what follows it would be in excess, with
     * `*ret_has_excess`), -EBUSY (the backend refuses the request, of which it has done nothing), -ENOPROTOOPT (it does
     * not serve such requests) or -EINVAL.
     */
    int (*unwrap)(const struct mk_gateway_call *c, char *bytes, size_t *len, bool *ret_has_excess);
    /* (opt) Tells, after an unwrap() that has returned 1, whether the connection may serve another request. */
    bool (*keeps_conn)(const struct mk_gateway_call *c);
    /* (opt) Reads a head in place of mk_response_parser_head(), and returns as that; it sets the fields of the parser.
     */
    int (*parse_head)(const struct mk_gateway_call *c, struct mk_response_parser *p, struct mk_field *fields,
                      struct mk_str bytes);

    /*
     * (opt) Checks a head that is not interim. Sets `*ret_binds` if the connection belongs to the client from now on,
     * by its login. Returns 0 or -errno: the head cannot be passed on.
     */
    int (*check_head)(const struct mk_gateway_call *c, const struct mk_gateway_head *head, bool *ret_binds);
    /*
     * Adds a header of the response, valid as long as the exchange, to that of the client, if it is for it; not those
     * that Connection names. Returns 0 or -errno.
     */
    int (*pass_header)(const struct mk_gateway_call *c, struct mk_str name, struct mk_str value);
    /* (opt) Adds what else the client is to get with a status, also with a page of this server. Returns 0 or -errno. */
    int (*pass_more)(const struct mk_gateway_call *c, const struct mk_gateway_head *head);
    /* (opt) Passes an interim response on, or does not. */
    void (*pass_interim)(const struct mk_gateway_call *c, const struct mk_gateway_head *head);
    /* (opt) Sets the headers of a 101, after which the connection is a tunnel. Returns 0 or -errno. */
    int (*pass_upgrade)(const struct mk_gateway_call *c, const struct mk_gateway_head *head);
    /* (opt) Adds trailers, which are lines. */
    void (*add_trailers)(const struct mk_gateway_call *c, struct mk_str lines);
    /*
     * (opt) Returns what was wrong with a response that has failed with -errno, as a part of a sentence for the log and
     * for Proxy-Status ("it sends a record of another request"); a literal. NULL: nothing special.
     */
    const char *(*describe_fault)(const struct mk_gateway_call *c, int err);
    /*
     * (opt) Returns what an operator can do about an error, for the log; NULL: nothing special. `is_dial`: the
     * connection was not made.
     */
    const char *(*advise)(bool is_dial, int err);
};

/* Returns the value of a header of a response that is not repeated; `.p` NULL: there is none, or several. */
MK_API struct mk_str mk_gateway_head_find(const struct mk_gateway_head *head, struct mk_str name);
/* Tells whether a header Connection of a response has this option: the name of another header that is not passed on. */
MK_API bool mk_gateway_head_connection_has(const struct mk_gateway_head *head, struct mk_str option);
/*
 * Passes the headers of a response to pass_header() of the protocol, from a copy in the arena of the request, with
 * `only` (ends with an empty string; NULL: all) those of these names. Returns 0 or -errno.
 */
MK_API int mk_gateway_pass_headers(const struct mk_gateway_call *c, const struct mk_gateway_head *head,
                                   const struct mk_str *only);

/* ── the process ── */

enum mk_gateway_count {
    MK_GATEWAY_COUNT_REQUESTS,
    MK_GATEWAY_COUNT_CONNECTIONS,
    MK_GATEWAY_COUNT_RETRIES,
    MK_GATEWAY_COUNT_FAILURES,
    MK_GATEWAY_COUNT_TIMEOUTS,
    MK_GATEWAY_COUNTS
};

/* The initializer of the counters of a plugin, by its name. */
#define MK_GATEWAY_COUNTER_INFOS(plugin) \
    { \
        {plugin, "requests", "requests that were passed to a backend", MK_COUNTER_SUM}, \
            {plugin, "connections", "connections that were opened to backends", MK_COUNTER_SUM}, \
            {plugin, "retries", "requests that a kept connection has lost, and that were sent again", MK_COUNTER_SUM}, \
            {plugin, "failures", "requests that a backend did not answer, or not completely", MK_COUNTER_SUM}, \
        { \
            plugin, "timeouts", "requests for which a backend took too long", MK_COUNTER_SUM \
        } \
    }

/* A plugin that passes requests on. */
struct mk_gateway_type {
    const struct mk_plugin *plugin;
    const struct mk_counter_info *counters;    /* MK_GATEWAY_COUNTS, of MK_GATEWAY_COUNTER_INFOS() */
    const struct mk_counter_info *stats_infos; /* MK_BACKEND_STATS_INFOS() (<monkey/kit/backend_stats.h>) */
};

/* Makes the gateway of a plugin, in its start. `type` must stay. Returns 0 or -ENOMEM. */
MK_API int mk_gateway_new(const struct mk_gateway_type *type, void **ret_gateway);
/* Are hooks of the plugin, whose state of start is the gateway: stop, low_on_descriptors and low_on_memory. */
MK_API void mk_gateway_free(void *gateway);
MK_API void mk_gateway_shed(void *gateway);
MK_API void mk_gateway_shed_worker(struct mk_worker *worker, void *gateway);

/* Keep a pointer of the plugin with its state of start; NULL: none was set. */
MK_API void mk_gateway_set_user(void *gateway, void *user);
MK_API void *mk_gateway_get_user(const void *gateway);

/* For a generation_start, and the hook generation_stop. The first returns 0 or -ENOMEM. */
MK_API int mk_gateway_start_generation(const struct mk_plugin *plugin, struct mk_generation *g, void **ret_state);
MK_API void mk_gateway_stop_generation(struct mk_generation *g, void *state);

/* For a worker_start, and the hooks worker_stop and worker_serve. The first returns 0 or -ENOMEM. */
MK_API int mk_gateway_start_worker(const struct mk_plugin *plugin, struct mk_worker *worker, void **ret_state);
MK_API void mk_gateway_stop_worker(struct mk_worker *worker, void *state);
MK_API void mk_gateway_serve_worker(struct mk_worker *worker, void *state);

/* The routes of a host; zeroed: there are none. */
struct mk_gateway_routes {
    struct mk_gateway_route *first;
    struct mk_hash_table by_section;
};
/*
 * Opens what the sections of a host need, and adds their routes; reports mistakes at their keys. In host_start; the
 * struct of `section` begins with struct mk_gateway_conf. If the configuration is only checked, names without an
 * address and sockets that cannot be used are warnings. Returns 0, -EINVAL or -ENOMEM; the routes are to be freed in
 * any case.
 */
MK_API int mk_gateway_open_routes(const struct mk_plugin *plugin, struct mk_host *host,
                                  const struct mk_conf_section *section, const struct mk_gateway_protocol *protocol,
                                  struct mk_gateway_routes *routes);
/* Frees the routes of a host, in host_stop. */
MK_API void mk_gateway_free_routes(struct mk_gateway_routes *routes);
/* Returns the route of a section, which has one. Any thread. */
MK_API const struct mk_gateway_route *mk_gateway_find_route(const struct mk_gateway_routes *routes,
                                                            const void *section);

/*
 * Tells for is_source whether a section that passes on all requests of its paths takes a name, or one that it is a copy
 * of, by its pattern. One for the whole site takes what its pattern names alone; so does one with SendFile of the names
 * of files, which may be in its folders.
 */
MK_API bool mk_gateway_takes_source(const struct mk_gateway_conf *conf, const struct mk_source_query *of);
/* Calls `fn` of each_program for such a section. */
MK_API void mk_gateway_add_program(const struct mk_gateway_conf *conf, mk_program_fn fn, void *ctx);

/* ── requests ── */

/* Passes a request on. It responds in any case, now or later. `arg` is valid until the exchange ends; may be NULL. */
MK_API void mk_gateway_pass(struct mk_request *req, const struct mk_gateway_route *route, const void *arg);

/* Lists the backends of a plugin, for a command of the shell. Returns 0 or -ENOMEM. */
MK_API int mk_gateway_list_backends(struct mk_command_call *call, const struct mk_plugin *plugin);

MK_C_END

#endif
