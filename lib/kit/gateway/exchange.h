// SPDX-License-Identifier: Apache-2.0
/*
 * One request that is passed to a backend, and its response. What its files share: exchange.c (its life, failures,
 * timeouts, the connection), exchange_up.c (the request), exchange_down.c (the response) and exchange_server.c (which
 * server).
 */
#ifndef MK_GATEWAY_EXCHANGE_H
#define MK_GATEWAY_EXCHANGE_H

#include "buffer.h"
#include "download.h"
#include "received.h"
#include "report.h"
#include "tunnel.h"
#include "upload.h"

#include <stddef.h>

enum mk__gw_phase {
    MK__GW_QUEUED, /* it waits for a server of the group */
    MK__GW_DIALING,
    MK__GW_HANDSHAKE, /* within the time of the dial */
    MK__GW_WAITING,   /* for the head of the response */
    MK__GW_BODY,      /* the head was passed to the client */
    MK__GW_ENDED,     /* it has no connection any more */
};

struct mk__gw_exchange;

/* In the arena of the request. */
struct mk__gw_owner {
    struct mk__gw_exchange *exchange; /* NULL: it has become a tunnel */
    struct mk__gw_tunnel tunnel;
};

struct mk__gw_exchange {
    struct mk__gw_owner *owner;
    struct mk_request *req;
    const struct mk_gateway_route *route;
    const struct mk_gateway_conf *conf;
    const struct mk__gw_client *client;
    struct mk__gw_thread *thread;
    struct mk_loop *loop;
    struct mk__gw_backend *backend;
    bool uses_backend;              /* the request is with it, and not only held by this struct */
    struct mk_upstream_tries tries; /* with a group, as the next */
    struct mk_upstream_wait wait;
    struct mk__gw_backend_conn *conn; /* or NULL */
    struct mk__gw_report report;
    struct mk_dial dial;
    struct mk_timer timer;
    uint64_t timer_ms;                 /* when it fires; 0: it is not armed */
    uint64_t wait_end_ms, deadline_ms; /* UINT64_MAX: none */
    uint32_t wait_left_ms;             /* of a wait for the body that has stopped */
    uint64_t dialed_us, sent_ms;       /* when the dial began, and when some of the request was sent */
    uint8_t phase;                     /* enum mk__gw_phase */
    struct mk_gateway_call call;
    struct mk_gateway_body body;
    bool is_idempotent;
    bool is_continue_received; /* the client does not wait for a 100 (Continue) */
    bool is_retry;
    bool is_redial;      /* there was no descriptor for the dial */
    bool is_reading;     /* the request's body has a reader */
    bool is_paused;      /* the client, until the backend has taken what waits */
    bool awaits_bytes;   /* the client takes bytes, and there are none */
    bool is_taken;       /* the client takes what comes, by splice(2) */
    bool awaits_backend; /* for bytes of the body */
    bool has_body_bytes; /* some have come since that wait has begun */
    unsigned n_interim;
    struct mk__gw_pipe *pipe;        /* NULL, or it has bytes of the body, which come before those of the connection */
    struct mk__gw_received received; /* the body, with SpoolRequest */
    struct mk__gw_upload up;
    struct mk__gw_download down;
    struct mk__gw_buffer buffer;
    _Alignas(max_align_t) char state[]; /* of the protocol */
};

/* ── exchange.c ── */

/* Fails with -errno: retries, responds instead of the backend or cuts the response. Does nothing in MK__GW_ENDED. */
void mk__gw_exchange_fail(struct mk__gw_exchange *x, int err);
/* Something has happened: the present wait begins anew. */
void mk__gw_exchange_touch(struct mk__gw_exchange *x);
/* Begins a wait of `ms`; 0: without an end. */
void mk__gw_exchange_wait(struct mk__gw_exchange *x, uint32_t ms);
/* The response is complete: the connection is kept, if all is as it should be. */
void mk__gw_exchange_finish(struct mk__gw_exchange *x);
/* Responds instead of the backend. */
void mk__gw_exchange_reject(struct mk__gw_exchange *x, int status);
/* Responds instead of the backend, and says why; `details` may be empty. */
void mk__gw_exchange_respond_failure(struct mk__gw_exchange *x, int status, const char *type, struct mk_str details);
/* Logs why this server itself cannot pass the request on. */
void mk__gw_exchange_log_own(const struct mk__gw_exchange *x, const char *reason);
/* Responds with 503, because there is no memory, and logs it. */
void mk__gw_exchange_reject_memory(struct mk__gw_exchange *x);
/* Connects for a request whose body is there, or follows as it comes. */
void mk__gw_exchange_connect(struct mk__gw_exchange *x);
/* Connects to the server that was chosen for a further try; the request is sent once more. */
void mk__gw_exchange_connect_server(struct mk__gw_exchange *x);
/* No server can be used (-ENXIO), or too many requests wait (-EBUSY, -ETIMEDOUT). */
void mk__gw_exchange_reject_group(struct mk__gw_exchange *x, int err);
/* Tells whether the request can be sent once more: no part of a body prevents it. */
bool mk__gw_exchange_can_resend(const struct mk__gw_exchange *x);
void mk__gw_exchange_free(struct mk__gw_exchange *x);

/* ── exchange_server.c ── */

/*
 * The server has done what it has to do: it may have another request, although the client is still being sent this one.
 * Returns as mk__gw_backend_end_use().
 */
bool mk__gw_exchange_end_use(struct mk__gw_exchange *x);

/*
 * Holds the backend of the section, or of a server of its group which the request has not had, in place of the one
 * before, whose connection is closed. Returns 0; MK_AGAIN (the exchange is MK__GW_QUEUED, without a backend, and
 * mk__gw_exchange_connect_server() or mk__gw_exchange_fail() follows); or -ENXIO (no server of the group can be used),
 * -EBUSY (its queue is full) or -ENOMEM, and nothing has changed.
 */
int mk__gw_exchange_choose_server(struct mk__gw_exchange *x);
/* Tells the group how its server has served; they do nothing without one. */
void mk__gw_exchange_report_head(struct mk__gw_exchange *x, unsigned status);
void mk__gw_exchange_report_error(struct mk__gw_exchange *x, int err);
/* Tells whether a head with this status is to be dropped, and another server has the request now. */
bool mk__gw_exchange_tries_after_status(struct mk__gw_exchange *x, unsigned status);

/* ── exchange_up.c ── */

/* Tells whether there is a body that can be received before the backend is asked; and begins to. */
bool mk__gw_exchange_up_needs_receiving(const struct mk__gw_exchange *x);
void mk__gw_exchange_up_receive(struct mk__gw_exchange *x);
/* Sends the request; its body follows as it comes. */
void mk__gw_exchange_up_begin(struct mk__gw_exchange *x);
/* Prepares it for another connection. */
void mk__gw_exchange_up_rewind(struct mk__gw_exchange *x);
/* The connection can take bytes. */
void mk__gw_exchange_up_resume(struct mk__gw_exchange *x);

/* ── exchange_down.c ── */

/* The connection has bytes, or has ended. */
void mk__gw_exchange_down_resume(struct mk__gw_exchange *x);
/* Reads what the client does not take now. */
void mk__gw_exchange_down_fill(struct mk__gw_buffer *buffer);

#endif
