// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of an exchange share: exchange.c (its life, failures, timeouts, the connection), exchange_up.c (the
 * request), exchange_down.c (the response) and exchange_server.c (which server).
 */
#ifndef PROXY_EXCHANGE_STATE_H
#define PROXY_EXCHANGE_STATE_H

#include "buffer.h"
#include "download.h"
#include "received.h"
#include "report.h"
#include "request.h"
#include "tunnel.h"
#include "upload.h"

enum phase {
    QUEUED, /* it waits for a server of the group */
    DIALING,
    HANDSHAKE, /* within the time of the dial */
    WAITING,   /* for the head of the response */
    BODY,      /* the head was passed to the client */
    OVER,      /* it has no connection any more */
};

struct exchange;

/* In the arena of the request. */
struct owner {
    struct exchange *exchange; /* NULL: it has become a tunnel */
    struct tunnel tunnel;
};

struct exchange {
    struct owner *owner;
    struct mk_request *req;
    const struct route *route;
    const struct proxy_conf *conf;
    const struct client *client;
    struct thread *thread;
    struct mk_loop *loop;
    struct backend *backend;
    bool uses_backend;              /* the request is with it, and not only held by this struct */
    struct mk_upstream_tries tries; /* with a group, as the next */
    struct mk_upstream_wait wait;
    struct backend_conn *conn; /* or NULL */
    struct report report;
    struct mk_dial dial;
    struct mk_timer timer;
    uint64_t timer_ms;                 /* when it fires; 0: it is not armed */
    uint64_t wait_end_ms, deadline_ms; /* UINT64_MAX: none */
    uint64_t dialed_us, sent_ms;       /* when the dial began, and sending */
    uint8_t phase;                     /* enum phase */
    struct framing framing;
    bool is_idempotent;
    bool is_invited; /* the client does not wait for a 100 (Continue) */
    bool is_retry;
    bool is_redial;      /* there was no descriptor for the dial */
    bool has_trailers;   /* the client has announced some */
    bool is_reading;     /* the request's body has a reader */
    bool is_paused;      /* the client, until the backend has taken what waits */
    bool awaits_bytes;   /* the client takes bytes, and there are none */
    bool is_taken;       /* the client takes what comes, by splice(2) */
    bool awaits_backend; /* for bytes of the body */
    unsigned n_interim;
    struct pipe *pipe;        /* NULL, or it has bytes of the body, which come before those of the connection */
    struct received received; /* the body, with SpoolRequest */
    struct upload up;
    struct download down;
    struct buffer buffer;
    struct upgrade upgrade;
};

/* ── exchange.c ── */

/* Fails with -errno: retries, responds instead of the backend or cuts the response. Does nothing in OVER. */
void exchange_fail(struct exchange *x, int err);
/* Something has happened: the present wait begins anew. */
void exchange_touch(struct exchange *x);
/* The response is complete: the connection is kept, if all is as it should be. */
void exchange_finish(struct exchange *x);
/* Responds instead of the backend. */
void exchange_reject(struct exchange *x, int status);
/* Responds instead of the backend, and says why; `details` may be empty. */
void exchange_respond_failure(struct exchange *x, int status, const char *type, struct mk_str details);
/* Connects for a request whose body is there, or follows as it comes. */
void exchange_connect(struct exchange *x);
/* Connects to the server that was chosen for a further try; the request is sent once more. */
void exchange_connect_server(struct exchange *x);
/* No server can be used (-ENXIO), or too many requests wait (-EBUSY, -ETIMEDOUT). */
void exchange_reject_group(struct exchange *x, int err);
/* Tells whether nothing of a body stands in the way of sending the request once more. */
bool exchange_can_resend(const struct exchange *x);
void exchange_free(struct exchange *x);

/* ── exchange_server.c ── */

/* The server has done what it has to do: it may have another request, although the client is still being sent this one.
 */
void exchange_end_use(struct exchange *x);

/*
 * Holds the backend of the section, or of a server of its group which the request has not had, in place of the one
 * before, whose connection is closed. Returns 0; MK_AGAIN (the exchange is QUEUED, without a backend, and
 * exchange_connect_server() or exchange_fail() follows); or -ENXIO (no server of the group can be used), -EBUSY (its
 * queue is full) or -ENOMEM, and nothing has changed.
 */
int exchange_choose_server(struct exchange *x);
/* Tells the group how its server has served; they do nothing without one. */
void exchange_report_head(struct exchange *x, unsigned status);
void exchange_report_error(struct exchange *x, int err);
/* Tells whether a head with this status is to be dropped, and another server has the request now. */
bool exchange_tries_after_status(struct exchange *x, unsigned status);

/* ── exchange_up.c ── */

/* Tells whether there is a body that can be received before the backend is asked; and begins to. */
bool exchange_up_needs_receiving(const struct exchange *x);
void exchange_up_receive(struct exchange *x);
/* Sends the request; its body follows as it comes. */
void exchange_up_begin(struct exchange *x);
/* Prepares it for another connection. */
void exchange_up_rewind(struct exchange *x);
/* The connection can take bytes. */
void exchange_up_resume(struct exchange *x);

/* ── exchange_down.c ── */

/* The connection has bytes, or has ended. */
void exchange_down_resume(struct exchange *x);
/* Reads what the client does not take now. */
void exchange_down_fill(struct buffer *buffer);

#endif
