// SPDX-License-Identifier: Apache-2.0
#ifndef CHEETAH_CLIENT_H
#define CHEETAH_CLIENT_H

#include <monkey/base/buf.h>
#include <monkey/base/str.h>
#include <monkey/kit/threads.h>

#include <sys/types.h>

/*
 * What this plugin keeps for each thread: its clients, and what ends with it.
 */
struct thread {
    struct mk_thread base;
    const void *server;     /* does not change; what follows is of the thread itself */
    struct mk_list at_end;  /* struct thread_at_end */
    struct mk_list clients; /* of client.c */
    unsigned n_clients;
};

/* A function that is called when the thread ends, before calls are refused. */
struct thread_at_end {
    struct mk_list node;
    void (*fn)(struct thread_at_end *at_end);
};

extern const struct mk_thread_type thread_type;

static inline struct thread *thread_of(struct mk_thread *base)
{
    return MK_CONTAINER_OF(base, struct thread, base);
}

/* Stores up to `max` threads of the same server, in the order of their indexes; each is held. Returns how many. */
unsigned thread_list_all(const struct thread *t, struct mk_thread **ret, unsigned max);

/*
 * Returns the worker in use, in its thread; if that does not have this plugin any more, one of those that the thread
 * keeps from before.
 */
struct mk_worker *thread_worker(const struct thread *t);

/*
 * A request of a shell is one line: a command and its arguments.
 *
 *     connections state=idle            words; "..." and '...' keep blanks, a backslash the byte after it
 *     ["connections", "state=idle"]     or a JSON array of strings
 */
enum { WORDS_MAX = 64, WORDS_LINE_BYTES = 16 * 1024 };

struct words {
    unsigned n;
    struct mk_str items[WORDS_MAX]; /* in the bytes of the line, which were changed; without a NUL */
};

/*
 * Splits a line without its end; the words take the place of the line. Returns NULL, or a sentence that says what is
 * wrong.
 */
const char *words_split(char *line, size_t len, struct words *ret);

/*
 * A connected shell: its requests line by line, and their answers.
 *
 *     line ─► words ─► command ─► run ─► objects, one in a line ─► out ─► socket
 *                                  └─ waits while `out` is full (client_is_full(), run->resume)
 *
 * A shell that does not read its answer for Timeout is closed. In the thread of the worker that accepts.
 */
enum { CLIENT_OUT_FULL = 64 * 1024, CLIENT_OUT_MAX = 1024 * 1024, CLIENT_OBJECT_MAX = 64 * 1024 };

struct client;
/* Runs a request: answers it, or begins a run. */
typedef void (*client_request_fn)(struct client *c, const struct words *words);

/* A command under way. */
struct run {
    struct client *client;
    /* There is room for output again. */
    void (*resume)(struct run *run);
    /* The client has gone, or (`streams`) sent a line to end it: frees the run, or leaves that to a call under way. */
    void (*stop)(struct run *run);
    bool streams; /* it continues until the client sends something */
};

struct client {
    struct mk_list node; /* in thread->clients */
    struct thread *thread;
    struct mk_event event;
    uint32_t events; /* that are watched */
    struct mk_timer timer;
    uint32_t timeout_ms;
    struct mk_buf in, out;
    client_request_fn on_request;
    struct run *run;
    const char *command;
    bool ended_input, closing, in_step;
    bool cut; /* the answer has been cut */
    pid_t pid;
    uid_t uid;
};

/* Sends an error to a connection that is not served, and closes it. */
void client_reject(int fd, const char *error);
/* Serves a connection; takes the descriptor. */
void client_open(struct thread *t, int fd, client_request_fn on_request, uint32_t timeout_ms, unsigned clients_max);
/* Closes it. */
void client_close(struct client *c);
/* Ends its command, sends the sentence, and closes it. Not within a request or a run of the client. */
void client_close_with_error(struct client *c, const char *error);

static inline bool client_is_full(const struct client *c)
{
    return c->out.len >= CLIENT_OUT_FULL;
}

/*
 * Returns whether another object has room, for commands that cannot continue later. The first time that it has not, it
 * adds a warning: the rest of the answer is left out.
 */
bool client_has_room(struct client *c);

/* Sends what has been added to `out`; to be called at the end of each callback that adds to it. May close the client.
 */
void client_flush(struct client *c);

/* Adds the first object of an answer. `view`: "table", "list" or "text". */
void client_begin(struct client *c, const char *view);
/* Adds a warning: {"warning": "..."}. */
void client_warn(struct client *c, const char *format, ...) MK_PRINTF(2, 3);
/* Adds each line of a text as an object: {"text": "..."}; as many as there is room for (client_has_room()). */
void client_add_lines(struct client *c, struct mk_str text);
/* Adds the last object of an answer. `error`: a sentence, or NULL. Ends the run; the next line is read. */
void client_end(struct client *c, const char *error);

/* Ends an answer that has not begun, with a sentence. */
void client_refuse(struct client *c, const char *format, ...) MK_PRINTF(2, 3);

/* Returns the worker in use in the client's thread, which is that of the caller. */
static inline struct mk_worker *client_worker(const struct client *c)
{
    return thread_worker(c->thread);
}

#endif
