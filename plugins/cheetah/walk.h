// SPDX-License-Identifier: Apache-2.0
/*
 * A command that asks all threads of the server, one after the other and each in pieces:
 *
 *     client's thread          another thread
 *     ask ───────── piece ───────► fn(piece, worker)
 *     add to the answer ◄───────── piece
 *
 * A thread that does not answer within two seconds is named in the answer, which continues without it. Its piece is
 * freed when it comes back. Between two pieces the connections of a thread may change: see struct mk_inspect_cursor.
 */
#ifndef CHEETAH_WALK_H
#define CHEETAH_WALK_H

#include "client.h"

#include <monkey/inspect.h>

enum { WALK_PIECE_CONNS = 64, WALK_TEXT_MAX = 256, WALK_ANSWER_MS = 2000, WALK_PIECE_BYTES = 512 * 1024 };

struct walk;
struct piece;
/* Runs in the thread that is asked. */
typedef void (*piece_fn)(struct piece *p, struct mk_worker *worker);

/* What connections a command is about. Texts are empty if they do not matter. */
struct conn_filter {
    uint64_t id; /* 0: any */
    struct mk_address peer;
    bool by_peer;
    char state[24], listener[WALK_TEXT_MAX], host[WALK_TEXT_MAX];
    uint32_t age_min_s;
    bool with_request, without_request; /* only those that have one under way, or none */
};

struct piece {
    struct mk_thread_call call;
    struct walk *walk; /* of the client's thread only; NULL: it has ended */
    struct thread *thread, *home;
    piece_fn fn;
    struct thread_at_end at_end;     /* of the thread that is asked: closes the cursor */
    struct mk_inspect_cursor cursor; /* likewise; in use if `open` */
    bool open;
    /* what fn reads and writes */
    struct conn_filter filter;
    void *tracer;                     /* of trace.c */
    void (*release)(struct piece *p); /* frees it with the piece; NULL: there is none */
    struct mk_buf out;
    bool more;                 /* fn is to be called again */
    uint64_t found, found_max; /* found_max 0: no limit */
    struct mk_inspect_worker worker;
};

/* Is called in the client's thread for each piece that has come back, before its output is added. May be NULL. */
typedef void (*walk_collect_fn)(struct walk *w, struct piece *p);
/* Is called at the end; adds the rest of the answer and calls client_end(), or begins another run. */
typedef void (*walk_finish_fn)(struct walk *w, struct client *c);

struct walk {
    struct run run;
    piece_fn fn;
    walk_collect_fn collect;
    walk_finish_fn finish; /* NULL: the answer just ends */
    struct conn_filter filter;
    void *data; /* of the command; `drop` frees it if the walk is stopped. Both may be NULL */
    void (*drop)(struct walk *w);
    uint64_t found, found_max; /* found_max 0: no limit */
    struct mk_inspect_worker totals;
    unsigned workers;
    /* of walk.c */
    struct piece *piece; /* of the thread that is asked now */
    bool waiting;
    struct mk_timer timer;
    struct mk_thread **threads;
    unsigned n, at;
};

/* Returns a walk that has not begun; NULL without memory (the answer was ended). */
struct walk *walk_new(struct client *c, piece_fn fn);
/* Begins it; the caller has begun the answer. */
void walk_start(struct walk *w);

/* For a piece_fn: shows the next connections to `fn`, and sets p->more. `ctx` is the piece. */
void piece_next_conns(struct piece *p, struct mk_worker *worker, mk_inspect_conn_fn fn);
/* Returns whether a connection passes the filter. */
bool conn_filter_holds(const struct conn_filter *f, const struct mk_inspect_conn *conn);

#endif
