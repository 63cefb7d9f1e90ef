// SPDX-License-Identifier: Apache-2.0
/*
 * An environment without time and without a network: a loop on a clock that advances only when everything waits, and
 * clients whose connections are queues in memory. Timeouts are tested to the millisecond, and nothing sleeps. It does
 * not use cmocka, so that the fuzz targets can use it too.
 *
 *     client ──mk_test_send──► to_server ──read──► the server
 *     client ◄──from_server◄──write (as far as there is room)──┘
 *
 * Events are edges, as the server asks epoll for: one is reported when something happened, with all that is
 * true at that moment.
 */
#ifndef MK_UNIT_HARNESS_H
#define MK_UNIT_HARNESS_H

#include <monkey/transport.h>

#include "base/clock.h"
#include "http/conn.h"
#include "http/http.h"
#include "loop/loop.h"

/* Bytes that a test keeps: not drawn on the allocator under test. Always ends with a NUL. */
struct mk_test_bytes {
    char *p;
    size_t len, size;
};

struct mk_test_fixture;

/* A client: its end of a connection. */
struct mk_test_client {
    struct mk_test_client *next_edge;
    struct mk_test_fixture *fixture;
    struct mk_event *event; /* the server's, while it watches */
    uint32_t pending;       /* edges not yet reported */
    bool is_queued;         /* in the list of those */
    struct mk_test_bytes to_server, from_server;
    size_t read_bytes;             /* in all */
    size_t read_at;                /* bytes of to_server that the server has read */
    size_t read_max;               /* the most that one read gives */
    size_t room;                   /* bytes that the client still takes */
    unsigned reads, writes, files; /* calls that moved bytes */
    int error;                     /* what every call answers: the connection was reset */
    bool fin;                      /* the client's last byte is sent */
    bool shut, closed;             /* by the server */
    bool corked;                   /* the last call promised more */
    int handshake_result;          /* for a test whose transport has a handshake: of its next steps, */
    unsigned handshake_steps;      /* and how many there were */
    unsigned notified;             /* how many messages said that it ended */
};

/* Over the queues of a client, which is the state; the start of a transport of a test's own. */
extern const struct mk_transport mk_test_memory;

/* The longest that a test may let pass in one go. */
enum { MK_TEST_DAY_MS = 24 * 3600 * 1000 };

struct mk_test_fixture {
    struct mk_loop loop;
    struct mk__clock clock;
    struct mk__poller poller;
    uint64_t now_ms, limit_ms;
    bool is_idle;                         /* nothing happened in the last wait, and no more time is granted */
    bool refuses_events;                  /* mk_event_add() fails */
    int open_error;                       /* of the next connection's transport */
    const struct mk_transport *transport; /* of the next connections; NULL: mk_test_memory */
    const struct mk__listener *listener;  /* of the next connection */
    struct mk_thread_pool *jobs;

    /* HTTP, from mk_test_http_open() on */
    struct mk_account account;
    struct mk__http_settings settings;
    const struct mk__http_limits *limits; /* of the requests, if not those of the settings */
    struct mk__context http;
    void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture);
    void (*on_response)(struct mk_request *req, struct mk_test_fixture *fixture);
    void (*on_done)(struct mk_request *req, struct mk_test_fixture *fixture);
    void *ctx; /* the handler's */
    unsigned requests, done, aborted, closed, worker_refs;
    struct mk_test_client **clients; /* by number, which is their descriptor's */
    unsigned n_clients, clients_size;
    struct mk_test_client *first_edge, **last_edge; /* those with an edge to report, oldest first */
};

/* A loop at time 1000, seconds 784111777 ("Sun, 06 Nov 1994 08:49:37 GMT"). 0 or -errno. */
int mk_test_fixture_open(struct mk_test_fixture *w, struct mk_thread_pool *jobs);
/* Ends HTTP too if it was opened, and frees the clients. Aborts when memory is still in use. */
void mk_test_fixture_close(struct mk_test_fixture *w);

/* Turns the loop until nothing happens any more, without letting time pass. */
void mk_test_settle(struct mk_test_fixture *w);
/* The same, then lets `ms` milliseconds pass, stopping at every timer on the way. */
void mk_test_pass(struct mk_test_fixture *w, uint64_t ms);
/* Waits, in real time, until another thread wakes the loop, then settles. Returns false after a minute. */
bool mk_test_wait_wakeup(struct mk_test_fixture *w);

/*
 * Opens HTTP with generous settings (see harness.c), which may be changed before. The handler answers requests;
 * without one each gets "hello". 0 or -errno.
 */
void mk_test_settings(struct mk__http_settings *s);
int mk_test_http_open(struct mk_test_fixture *w);

/* Connects, with `first` as the bytes that are there already; NULL when the server has no memory for it. */
struct mk_test_client *mk_test_connect(struct mk_test_fixture *w, struct mk_str first);
/* Each of these causes an edge; the server acts on it in the next turn. */
void mk_test_send(struct mk_test_client *c, struct mk_str bytes);
void mk_test_fin(struct mk_test_client *c);
void mk_test_reset(struct mk_test_client *c);
void mk_test_take(struct mk_test_client *c, size_t bytes); /* makes room */

/* What the server has sent since the last call, NUL-terminated; valid until it sends more. */
struct mk_str mk_test_received(struct mk_test_client *c);

/*
 * Which bytes of files are in the page cache, instead of what the kernel keeps: after this call none of any file, until
 * a disk thread has read their page, for the reads that do not wait. mk_test_fixture_close() ends that.
 */
void mk_test_make_cold(void);
/* Makes disk threads wait in their reads until they are released; they are before the thread pool is closed. */
void mk_test_hold_disk(bool held);

/* Uses up what a request was born with, so that its next allocation asks the heap. */
void mk_test_fill_arena(struct mk_request *req);

/* The server's side of it; NULL once that is gone. */
struct mk__conn *mk_test_connection(struct mk_test_client *c);
/* The name of the state that it waits in; "closed" when it is gone. */
const char *mk_test_state(struct mk_test_client *c);

#endif
