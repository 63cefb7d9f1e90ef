// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of a run share: run.c (its life), start.c (its process), input.c (the body of the request), output.c
 * (the response and error output) and redirect.c (local redirects).
 */
#ifndef CGI_RUN_STATE_H
#define CGI_RUN_STATE_H

#include "counters.h"
#include "process.h"

#include <monkey/kit/spool.h>

enum phase {
    LOOKUP,    /* the script is looked for */
    RECEIVING, /* the body is received first */
    WAITING,   /* too many scripts run */
    STARTING,
    HEAD, /* the script runs, and has not written the head of its response */
    BODY, /* the head was passed to the client */
    OVER, /* no output of the script is awaited for the client any more */
};

/* A spool of the run; it may be used by jobs until it is freed. */
struct run;
struct run_spool {
    struct run *run;
    struct mk_spool *spool; /* NULL: none */
};

/* Lasts as long as the request, and the process. */
struct run {
    struct mk_list node;    /* of the thread */
    struct mk_request *req; /* NULL: it has ended */
    struct run **owner;     /* in the arena of the request */
    struct thread *thread;
    struct mk_worker *worker; /* held */
    struct mk_loop *loop;
    const struct cgi_conf *conf;
    struct slots *slots; /* held */
    struct slots_waiter waiter;
    uint8_t phase; /* enum phase */
    bool has_slot;
    unsigned spools_open; /* not freed yet */
    struct mk_timer timer;
    struct mk_task task; /* frees it */

    /* what is run */
    struct mk_cgi_params params; /* its strings are in the arena of the request */
    struct mk_str path;          /* likewise, with a NUL: the path that is asked for */
    unsigned redirects;
    const struct section *next; /* of a redirect, once the process has ended; NULL: none */

    /* the process */
    struct mk_child child;
    bool has_child; /* the child is not closed */
    bool has_ended, is_stopped, is_late;
    int status;

    /* the body of the request */
    struct mk_event in; /* fd -1: closed */
    bool in_is_watched, is_paused, body_ended, has_body;
    struct mk_buf unsent;
    struct run_spool received; /* with a body that is received first */
    bool is_received, has_failed;

    /* the response */
    struct mk_event out, err; /* fd -1: closed */
    bool out_is_watched, err_is_watched;
    struct mk_buf head;
    struct mk_cgi_head parser;
    struct mk_field *fields; /* in the arena of the request */
    struct run_spool kept;   /* what the client has not taken */
    uint64_t kept_bytes;     /* of the body, with what was taken already */
    bool out_ended;          /* the script has closed its output */
    bool has_all;            /* the body is kept to its end: the script may continue, and what it writes is dropped */
    bool has_excess;         /* something was dropped that does not fit Content-Length */
    bool awaits_status;      /* only how it has ended is not known */
    bool is_complete;        /* the client has got all, or nothing is for it */
    bool has_last_wait;      /* the time is running that a script has after that */
    bool is_truncated;       /* the response ends in the midst */
    struct mk_cgi_stderr errors;
    char prefix[256];
};

/* ── run.c ── */

/* Something has happened: the time of the script begins anew, unless it waits for the client. */
void run_touch(struct run *r);
/* Responds instead of the script, or cuts its response, and ends it. */
void run_fail(struct run *r, int status);
/* Ends the process, if it runs. */
void run_stop_child(struct run *r);
/* Closes the process, which has ended, and gives its place to another one. */
void run_close_child(struct run *r);
/* Frees the run, at the end of the turn, if nothing needs it any more. */
void run_release(struct run *r);
/* Waits for a place among the scripts that run, and starts. */
void run_enter(struct run *r);
/* Looks the script up, at first and for a redirect. */
void run_find(struct run *r);
/* Opens a spool of the run. Returns 0, -EDQUOT or -ENOMEM. */
int run_open_spool(struct run *r, struct run_spool *s, const struct mk_gateway_buffer *sizes, bool is_kept,
                   void (*ready)(struct mk_spool *spool, unsigned what, void *ctx));
void run_close_spool(struct run_spool *s);
/* Closes a descriptor and ends its watch. */
void run_close_fd(struct run *r, struct mk_event *event, bool *is_watched);
/* Begins or ends a watch. Returns 0 or -errno. */
int run_watch(struct run *r, struct mk_event *event, bool *is_watched, uint32_t events);

/* ── start.c ── */

/* Starts the process. */
void run_start(struct run *r);

/* ── input.c ── */

/* Tells whether the body has to be received before the script starts. */
bool run_input_needs_receiving(const struct run *r);
/* Receives it, and then waits for a place. */
void run_input_receive(struct run *r);
/* Sends it to the script, which runs. */
void run_input_begin(struct run *r);
void run_input_release(struct run *r);
/* Tells whether the script may be waiting for the client's body. */
bool run_input_awaits_client(const struct run *r);

/* ── output.c ── */

/* Begins to read what the script writes. Returns 0 or -errno. */
int run_output_begin(struct run *r);
/* The process has ended. */
void run_output_note_end(struct run *r);
/* Ends the response: the status that was awaited is known, or does not come soon. */
void run_output_finish(struct run *r);
void run_output_release(struct run *r);

/* ── redirect.c ── */

/* Follows a redirect of the script to a path of this server, or refuses it; `target` is valid during the call. */
void run_redirect(struct run *r, struct mk_str target);
/* Continues with `next`: the process has ended. */
void run_redirect_continue(struct run *r);

#endif
