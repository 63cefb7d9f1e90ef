// SPDX-License-Identifier: Apache-2.0
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include <monkey/base/address.h>
#include <monkey/base/str.h>
#include <monkey/conf.h>
#include <monkey/kit/gateway.h>
#include <monkey/kit/variables.h>
#include <monkey/kit/websocket.h>
#include <monkey/request.h>

/* ── what a proxy does with each header (RFC 9110 section 7.6): a table for both directions ── */

enum header_rule {
    HEADER_PASS,
    HEADER_DROP,   /* of one connection, or replaced by what the server writes itself */
    HEADER_SET,    /* that the proxy sets in requests: one of the client is not passed on */
    HEADER_LENGTH, /* Content-Length */
    HEADER_DATE,
    HEADER_LOCATION, /* also Content-Location */
    HEADER_REFRESH,
    HEADER_LINK,
    HEADER_COOKIE,       /* Set-Cookie */
    HEADER_DESTINATION,  /* in requests: of WebDAV */
    HEADER_IF,           /* in requests: of WebDAV */
    HEADER_MAX_FORWARDS, /* in requests, which the proxy counts down */
    /* In requests: has a `_`, and is a header with a rule once that is read as `-`, as many backends do. */
    HEADER_AMBIGUOUS,
};

/* Tells whether a header of a request is passed on, if nothing in the request or the section speaks against it. */
static inline bool header_is_passed(enum header_rule rule)
{
    return rule == HEADER_PASS || rule == HEADER_DESTINATION || rule == HEADER_IF;
}

/* Returns what becomes of a header of a request. */
enum header_rule header_of_request(struct mk_str name);
/* Returns what becomes of a header of a response. */
enum header_rule header_of_response(struct mk_str name);
/* Tells whether a trailer is one: others are about the framing, or belong in the head (RFC 9110 section 6.5.1). */
bool header_may_be_trailer(struct mk_str name);

/*
 * The headers that a section sets in requests or removes from them: RequestSet and RequestRemove. Their values are
 * split at variables when the configuration is loaded.
 */
struct field {
    struct field *next;
    struct mk_str name;
    const struct mk_text_piece *value; /* NULL: it is removed */
};

/* In the order of the lines. */
struct field_list {
    struct field *first, **last;
};

/* Those of a section; constant once the configuration is loaded. */
struct field_changes {
    struct field_list set, remove;
};

/* Parse a struct field_list: the values of RequestSet and RequestRemove; mk_conf_parse_fn. */
int fields_parse_set(const struct mk_conf_value *value, void *list, struct mk_arena *arena, struct mk_buf *error);
int fields_parse_remove(const struct mk_conf_value *value, void *list, struct mk_arena *arena, struct mk_buf *error);

/* Tells whether a header is set. Pure. */
bool fields_set(const struct field_changes *changes, struct mk_str name);
/* Tells whether a header of the client is replaced or removed; `_` counts as `-`, as many backends read it. Pure. */
bool fields_replace(const struct field_changes *changes, struct mk_str name);
/* Tells whether a backend that reads `_` as `-` would take a header of the client for one that is set. Pure. */
bool fields_are_ambiguous(const struct field_changes *changes, struct mk_str name);
/*
 * Writes the headers that are set, each as a line; one whose value is empty is left out. Returns 0, or -EINVAL: a value
 * has a control byte, which could begin a new line.
 */
int fields_write(const struct field_changes *changes, struct mk_request *req, struct mk_buf *out);

/* ── the directives of [PROXY] ── */

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

/*
 * Traces that begin here (W3C Trace Context): TraceSample, and the header traceparent.
 *
 *     00-0af7651916cd43dd8448eb211c80319c-8448eb211c80319c-01
 *        └ trace: of the request ID ────┘ └ span ────────┘ └ sampled
 */

/* Shares are in millionths. */
enum { TRACE_OFF = -1, TRACE_ALL = 1000000 };

/* Parses the value of TraceSample, an int32_t; mk_conf_parse_fn. */
int trace_parse_share(const struct mk_conf_value *value, void *share, struct mk_arena *arena, struct mk_buf *error);

/* Tells whether a value of traceparent is one, of any version (section 3.2). Pure. */
bool trace_is_valid(struct mk_str value);
/*
 * Tells whether a trace belongs to a share. That depends on the last 56 bits of its ID, which are random (W3C Trace
 * Context Level 2), so that all tries of a request, and servers with the same share, decide alike. Pure.
 */
bool trace_is_sampled(struct mk_str id, int32_t share);

/*
 * Returns the traceparent of a trace that begins with this request: the client has sent no valid one, and a share is
 * set. It is the same in all tries, and noted for the log. Empty: what the client has sent is passed on.
 */
struct mk_str trace_begin(struct mk_request *req, int32_t share, const struct field_changes *changes);
/* Tells whether a header of the client belongs to a trace that another one replaces. Pure. */
bool trace_replaces(struct mk_str name);

/*
 * How the URLs of a site correspond to those of a backend: the origin and the prefix of the path.
 *
 *     https://site.example/app/x          Match /app, To http://127.0.0.1:8080/v2
 *     └ client ──────────────┘
 *     http://127.0.0.1:8080/v2/x
 *     └ backend ─────────────┘
 */

/* One of the two. The prefix is percent-encoded and has no slash at its end; both are empty if none is replaced. */
struct mapping_side {
    struct mk_str scheme, authorities[3]; /* each with or without a port; all but the first may be empty */
    struct mk_str prefix;
};

struct mapping {
    struct mapping_side client, backend;
    struct mk_str host; /* what the client has asked for, without a port */
};

/* Returns host and port that the client asked for, as Host has them. */
struct mk_str mapping_get_authority(struct mk_request *req);
/* Returns the Host that the backend gets. */
struct mk_str mapping_get_backend_host(struct mk_request *req, const struct proxy_conf *conf);
/* Describes a request of a section. The texts live as long as the request. Returns 0 or -ENOMEM. */
int mapping_init(struct mapping *m, struct mk_request *req, const struct proxy_conf *conf);

/*
 * URLs of a backend in a response, as the client sees them, and those of the client in a request, as the backend does.
 * Pure but for the arena.
 *
 *     Location, Content-Location    /x, http://backend/x
 *     Refresh                       5; url=/x
 *     Link                          </x>; rel=preload, <http://backend/y>; rel=next
 *     Set-Cookie                    a=b; Path=/x; Domain=backend
 *     Destination                   http://site.example/app/x (of a request)
 *     If                            <http://site.example/app/x> (<urn:uuid:1>) (of a request)
 */

/* Returns the value of a header for the client: `value` itself if nothing changes, or without memory. */
typedef struct mk_str (*rewrite_fn)(const struct mapping *m, struct mk_str value, struct mk_arena *arena);

/*
 * Returns a location that the client can use. A path, and a URL of the backend or of this host, becomes a path with the
 * prefix that the backend does not know, unless it is below that already. A URL of this host counts only with the
 * scheme of the request: `https://` in a response to an `http` request is a redirect that has to stay one.
 */
struct mk_str rewrite_location(const struct mapping *m, struct mk_str value, struct mk_arena *arena);
/* Returns a value of Refresh with such a location. */
struct mk_str rewrite_refresh(const struct mapping *m, struct mk_str value, struct mk_arena *arena);
/* Returns a value of Link (RFC 8288) with such targets; parameters stay. */
struct mk_str rewrite_link(const struct mapping *m, struct mk_str value, struct mk_arena *arena);
/*
 * Returns a cookie whose Path has that prefix, and whose Domain is the host that the client has asked for, if it was
 * the backend's. Only the last attribute of each name counts (RFC 6265 section 5.3); all else stays byte for byte.
 * Cookies whose name begins with `__Host-` stay, because they must have the path `/`.
 */
struct mk_str rewrite_cookie(const struct mapping *m, struct mk_str value, struct mk_arena *arena);

/*
 * Writes the URL of Destination (RFC 4918 section 10.3) for the backend: with its scheme, Host and path, since servers
 * compare these with what they know of themselves. Others than those of the section stay as they are.
 */
void rewrite_write_destination(const struct mapping *m, struct mk_str url, struct mk_buf *out);
/* Writes an If (RFC 4918 section 10.4) whose resource tags are such URLs; state tokens and entity tags stay. */
void rewrite_write_if(const struct mapping *m, struct mk_str value, struct mk_buf *out);

/*
 * Headers of clients that are not passed on, since many backends would take them for one of the proxy's: they read `_`
 * as `-`. They are counted, and written to the log once in ten seconds and worker.
 */

/* Opens the counter; for the start of the process. */
void ambiguous_open(void);

/* ── Max-Forwards: how many proxies may pass an OPTIONS on (RFC 9110 section 7.6.2) ── */

/*
 * Responds to a TRACE with 405, and to an OPTIONS that may not be passed on any more with 204, or with 400 if the
 * number is none. Returns false if the request is to be passed on.
 */
bool forwards_end_here(struct mk_request *req);

/*
 * Trailers of requests (RFC 9110 section 6.5): those are passed on that the client has announced in the header Trailer,
 * and that may be trailers. They need a body in chunks.
 */

/* Tells whether the client has announced trailers. */
bool trailers_are_announced(struct mk_request *req);
/* Writes the header Trailer, if the client has announced some that are passed on. */
void trailers_announce(struct mk_buf *out, struct mk_request *req, const struct field_changes *changes);
/*
 * Returns the last chunk with the trailers, after the end of the body; valid until the exchange ends. `.p` is NULL if
 * there are none, or without memory. The trailers were kept (mk_request_keep_trailers()).
 */
struct mk_str trailers_make_chunk(struct mk_request *req, const struct field_changes *changes);

/*
 * Which protocol may replace HTTP on a connection to a backend: one that an HTTP/1.1 request asks for (RFC 9110 section
 * 7.8), or an extended CONNECT over HTTP/2 (RFC 8441), which becomes such a request.
 */

/* What a request asks for. */
struct upgrade {
    struct mk_str token; /* of the section; empty: no upgrade */
    bool is_extended_connect;
    /* The Sec-WebSocket-Key of the proxy, for an HTTP/2 client, which sends none; empty: none. */
    char key[MK_WS_KEY_BYTES + 1];
};

/*
 * Finds what is passed on of a request. Returns 0, 501 (an extended CONNECT for a protocol that the section does not
 * allow) or 503 (no key could be made).
 */
int upgrade_init(struct upgrade *u, struct mk_request *req, const struct mk_conf_list *allowed);

/* Returns the first protocol of a header Upgrade that is allowed, as the section has it; or MK_STR_NONE. Pure. */
struct mk_str upgrade_choose(const struct mk_conf_list *allowed, struct mk_str offered);
/* Tells whether a header of the client is replaced by one of upgrade_write(). Pure. */
bool upgrade_replaces(const struct upgrade *u, struct mk_str name);
/* Writes the fields that ask the backend for the upgrade. Pure. */
void upgrade_write(const struct upgrade *u, struct mk_buf *out);
/* Tells whether a response of 101 with these headers Upgrade and Sec-WebSocket-Accept is what was asked for. Pure. */
bool upgrade_is_agreed(const struct upgrade *u, struct mk_str token, struct mk_str accept);

/* ── the head of a request to a backend, anew with the proxy's own framing (RFC 9110 section 7.6) ── */

/*
 * Writes the head for a call whose state is a struct upgrade. Returns 0, -EINVAL (the client's Connection names a
 * header that it may not, or a value of RequestSet has control bytes of the client: 400), -ENOMEM or -ENOBUFS (it does
 * not fit: 431).
 */
int request_write_head(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out);

/*
 * The header of the PROXY protocol, version 1 or 2, which tells a backend the addresses of the client's connection. It
 * is sent once, before anything else, also before TLS.
 */
enum { PROXY_HEADER_BYTES_MAX = 128 };

/*
 * Writes the header for a connection from `client` to `server`; if only one of them is IPv4, it is written as an
 * IPv4-mapped address. A client without an IP address is unknown; a server without one is the unspecified address.
 */
void proxy_header_write(struct mk_buf *out, enum proxy_send_proxy version, struct mk_address client,
                        struct mk_address server);

/* ── HTTP/1.1 between this server and a backend, as <monkey/kit/gateway.h> uses it ── */

extern const struct mk_gateway_protocol proxy_protocol;

#endif
