// SPDX-License-Identifier: Apache-2.0
#ifndef CHEETAH_CHEETAH_H
#define CHEETAH_CHEETAH_H

#include <monkey/base/buf.h>
#include <monkey/base/str.h>
#include <monkey/inspect.h>
#include <monkey/kit/command.h>
#include <monkey/kit/threads.h>
#include <monkey/loop.h>
#include <monkey/plugin.h>

#include <stdint.h>
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

/*
 * The commands of the shell itself, as a table. Plugins have more: plugin_commands_check() and those below.
 */
/* Runs a command with the words of a line, the first of which is its name. Sends the answer, or begins a run. */
typedef void (*command_fn)(struct client *c, const struct words *words);

struct command {
    const char *name;
    char letter;                  /* the command is \letter, too; '\0': none */
    const char *arguments, *help; /* `help` NULL: it is for programs, and not listed */
    command_fn run;               /* NULL: the shell itself does it */
    /*
     * What the arguments are, for completion: "command", "connection", "host", "level", "method"; "server": the command
     * `complete` says it. NULL: nothing is known of them.
     */
    const char *complete;
};

/* Ends with a row without a name. */
extern const struct command commands[];

/* Finds a command of the shell itself by its name or letter; NULL: it has none. */
const struct command *commands_find(struct mk_str name);
/* Finds the command of the first word and runs it. An unknown one is answered with the nearest name. */
void commands_run(struct client *c, const struct words *words);

/* info.c */
void info_help(struct client *c, const struct words *words);
void info_status(struct client *c, const struct words *words);
void info_uptime(struct client *c, const struct words *words);
void info_config(struct client *c, const struct words *words);
void info_plugins(struct client *c, const struct words *words);
void info_vhosts(struct client *c, const struct words *words);
/* conns.c: workers */
void workers_list(struct client *c, const struct words *words);
void workers_timers(struct client *c, const struct words *words);
void workers_memory(struct client *c, const struct words *words);
void workers_status(struct client *c);
/* conns.c */
void conns_run(struct client *c, const struct words *words);
/* trace.c */
void trace_run(struct client *c, const struct words *words);
/* control.c */
void control_log(struct client *c, const struct words *words);
void control_reload(struct client *c, const struct words *words);
void control_reopen(struct client *c, const struct words *words);
void control_drain(struct client *c, const struct words *words);

/*
 * Which connections a command is about: arguments such as state=idle.
 */
struct conns_query {
    struct conn_filter filter;
    uint64_t limit; /* 0: none */
};

/* Reads an argument. Returns false if it is wrong; the answer was ended then. */
bool conns_read_argument(struct client *c, struct mk_str word, struct conns_query *q);

/*
 * What the server as a whole tells of itself.
 */
/* Adds the members of `status` that need no other thread. */
void info_add_status(struct client *c);

/*
 * The commands of plugins (<monkey/kit/command.h>), as the generation in use has them.
 */
/* A command and the plugin that has it; the strings are valid as long as the generation. */
struct plugin_command {
    const struct mk_command *command;
    const char *plugin;
};

/* Gets the n-th command of all plugins in their order. Returns false after the last one. Any thread. */
bool plugin_commands_get(const struct mk_generation *g, unsigned n, struct plugin_command *ret);
/* Finds the command of a name; NULL: no plugin has it. Any thread. */
const struct mk_command *plugin_commands_find(const struct mk_generation *g, struct mk_str name);

/* Runs a command: `words` are its name and its arguments, which are checked. Sends the answer, or begins a run. */
void plugin_commands_run(struct client *c, const struct mk_command *command, const struct words *words);
/* Answers with what the next argument may be: `words` are "complete", a command and the arguments so far. */
void plugin_commands_complete(struct client *c, const struct words *words);

/* Tells whether the shell itself has a command of that name. */
typedef bool (*plugin_commands_own_fn)(struct mk_str name);
/* Reports commands whose names the shell or another plugin has. From generation_check on. Returns 0 or -EINVAL. */
int plugin_commands_check(const struct mk_generation *g, plugin_commands_own_fn is_own, struct mk_buf *error);

/*
 * The Unix socket at which shells connect. Generations with the same path share it, so that a reload keeps it.
 *
 * An upgrade passes the socket on (mk_socket_keep()). A path in use by another server that lives is refused; the socket
 * of a server that has died is replaced.
 */
enum { ENDPOINT_PATH_MAX = 107 }; /* bytes of sun_path without the NUL */

struct endpoints {
    struct mk_list all;     /* struct endpoint; used in the hooks of the configuration only */
    char default_path[256]; /* empty: it was not needed yet */
};

struct endpoint {
    struct mk_list node;
    unsigned refs;     /* generations */
    unsigned watchers; /* workers that hold it in their loop, all in one thread */
    bool closed;       /* by endpoint_close() */
    bool watched;      /* its event is in `loop`, unless it is paused */
    bool paused;       /* `retry` waits: a connection could not be accepted */
    uint64_t warned_ms;
    struct mk_timer retry;
    struct mk_loop *loop;
    struct mk_event event;
    void (*on_accept)(struct endpoint *e, int fd); /* the descriptor is close-on-exec and does not block */
    void *ctx;
    uid_t owner; /* of the socket */
    dev_t device;
    ino_t inode;
    char path[ENDPOINT_PATH_MAX + 1];
};

/*
 * Returns the endpoint of a path, which is opened if no generation has it. NULL: `error` has a sentence without a full
 * stop.
 */
struct endpoint *endpoint_get(struct endpoints *all, const char *path, struct mk_buf *error);
/*
 * Tells whether a socket can be made at the path, for a check, by the rights of the caller. A socket that is there may
 * be that of the server which runs. Returns 0, or -errno with a sentence.
 */
int endpoint_check(const char *path, struct mk_buf *error);
/* Releases it; the last release closes the socket, and removes the path if it still leads to it. */
void endpoint_put(struct endpoint *e);
/*
 * Does that now, because the configuration in use does not have it, although others may still hold it. In the thread
 * that accepts, while a reload waits for it.
 */
void endpoint_close(struct endpoint *e);

/*
 * Hold it in a loop as long as there is a watcher. endpoint_watch() returns 0 or -errno; shells wait in the backlog of
 * the socket until endpoint_accept(), from which on they are accepted.
 */
int endpoint_watch(struct endpoint *e, struct mk_loop *loop);
void endpoint_accept(struct endpoint *e);
void endpoint_unwatch(struct endpoint *e, bool loop_lives);

/*
 * Returns the path that is used if the configuration has none: the same for the process as long as it lives, since it
 * may give its rights up after the first one.
 */
const char *endpoint_default_path(struct endpoints *all, const struct mk_generation *g);
/* Tells whether only root can open a socket at the path, and there is none: a start can, a reload after User cannot. */
bool endpoint_needs_root(const char *path);

#endif
