// SPDX-License-Identifier: Apache-2.0
#ifndef CGI_CGI_H
#define CGI_CGI_H

#include <monkey/base/str.h>
#include <monkey/kit/cgi.h>
#include <monkey/kit/child.h>
#include <monkey/kit/gateway.h>
#include <monkey/kit/hash_table.h>
#include <monkey/kit/source.h>
#include <monkey/kit/spool.h>
#include <monkey/kit/threads.h>
#include <monkey/loop.h>
#include <monkey/plugin.h>

#include <pthread.h>

extern const struct mk_plugin mk_plugin_cgi;

/* ── the directives of [CGI] ── */

enum { CGI_FIELDS_MAX = 128, CGI_INTERPRETER_ARGS_MAX = 8 };

/* A program that runs scripts with an extension. */
struct cgi_interpreter {
    struct cgi_interpreter *next;
    struct mk_str extension; /* ".py" */
    struct mk_str path;      /* absolute, with a NUL */
    struct mk_str args;      /* path and further arguments, each with a NUL after it */
};

struct cgi_interpreters {
    struct cgi_interpreter *first, **last;
};

/* A section; constant once the configuration is loaded. */
struct cgi_conf {
    struct mk_pattern match;
    struct mk_str root;   /* absolute; empty: below DocumentRoot */
    struct mk_str script; /* absolute: the one script of all paths; empty: not set */
    struct cgi_interpreters interpreters;
    int64_t processes_max, queue_max;
    uint32_t queue_timeout_ms, timeout_ms;
    struct mk_child_limits limits;
    struct mk_cgi_extras env;
    bool local_redirect, authorization, user_dirs;
    int encoded_slash; /* enum mk_encoded_slash */
    struct mk_gateway_buffer buffer;
    uint64_t spool_request_bytes; /* 0: Off; UINT64_MAX: On */
    uint64_t head_bytes_max;
    struct mk_response_limits head_limits;
};

extern const struct mk_conf_section cgi_sections[];

/* Returns the interpreter for a file; NULL: it is executed itself. */
const struct cgi_interpreter *cgi_conf_find_interpreter(const struct cgi_conf *conf, struct mk_str file);
/* Checks what is in the file system, for a host_start: reports what is wrong. Returns 0 or -EINVAL. */
int cgi_conf_check_files(struct mk_host *host, const struct cgi_conf *conf);

/*
 * How many scripts of a section run, in all workers together, and the requests that wait for one of them to end, in
 * their order. It lasts over reloads: a section of the same host with the same Match and Root continues with the count.
 * The limit is that of the configuration in use, for requests of all generations.
 */
struct slots {
    struct mk_hash_node node; /* in the table of the process */
    unsigned refs;            /* hosts and requests; under the lock of the table */
    pthread_mutex_t lock;     /* of all below */
    unsigned running, running_max, waiting;
    struct mk_list waiters;
    size_t bytes; /* of this struct */
    size_t key_len;
    char key[];
};

/* Those of the process. */
struct slots_table {
    pthread_mutex_t lock;
    struct mk_hash_table table; /* by the keys */
};

struct slots_waiter;
/* The waiter has a place now, in its thread. */
typedef void (*slots_fn)(struct slots_waiter *w);

/* A request that waits. */
struct slots_waiter {
    struct mk_list node;
    struct mk_message message;
    struct mk_loop *loop;
    struct slots *slots; /* NULL: it does not wait */
    bool is_granted;     /* the message is on its way */
    slots_fn fn;
};

void slots_table_init(struct slots_table *all);
void slots_table_release(struct slots_table *all);
/*
 * Finds the slots of a section, or makes them, with `running_max` places, and holds them. NULL: no memory. Any thread,
 * as the next ones.
 */
struct slots *slots_hold(struct slots_table *all, struct mk_str key, unsigned running_max);
/* Ends a hold. */
void slots_put(struct slots_table *all, struct slots *s);
/* Holds it once more. */
void slots_get(struct slots_table *all, struct slots *s);

/* Sets how many run at the same time, and grants what that adds. */
void slots_set_max(struct slots *s, unsigned running_max);

/*
 * Takes a place if there is one and none waits. Returns 0; MK_AGAIN (`w->fn` is called in this thread once there is
 * one, see slots_cancel()); or -EBUSY: `waiting_max` wait.
 */
int slots_take(struct slots *s, struct slots_waiter *w, unsigned waiting_max);
/* Gives a place back, or to the request that has waited longest. */
void slots_free(struct slots *s);
/* Ends a wait; does nothing if there is none. In its thread. */
void slots_cancel(struct slots_waiter *w);

/* ── what this plugin keeps for the process, a thread and a host ── */

enum { THREAD_BUFFER_BYTES = 64 * 1024 };

struct process {
    struct mk_threads threads;
    struct slots_table slots;
    struct mk_child_starter *starter;
};

struct thread {
    struct mk_thread base;
    struct process *process;
    struct mk_account *account;
    struct mk_child_channel *channel; /* NULL: none is open yet */
    struct mk_list runs;              /* struct run */
    char buffer[THREAD_BUFFER_BYTES];
};

/* A section of a host, with its slots. */
struct section {
    struct section *next;
    const struct cgi_conf *conf;
    struct slots *slots;
};

/* A folder of Root, or a file of Script, of one or several sections. */
struct programs {
    struct programs *next;
    struct mk_str path; /* with a NUL after it */
    bool is_script;
    struct mk_source_folder folder;
};

struct host {
    const struct mk_host *host;
    struct section *first;
    struct programs *programs;
    struct mk_source_extensions extensions; /* of Interpreter of all sections */
    struct mk_source_root root;
};

static inline struct thread *thread_of(struct mk_thread *base)
{
    return MK_CONTAINER_OF(base, struct thread, base);
}

/* ── what is counted ── */

enum count { COUNT_REQUESTS, COUNT_STARTS, COUNT_RUNNING, COUNT_REFUSED, COUNT_FAILURES, COUNT_TIMEOUTS, COUNTS };

/* Opens the counters, in a start of the plugin. */
void counters_open(void);
void counters_add(const struct mk_worker *worker, enum count count, int64_t n);

/*
 * What the files of a run share: run.c (its life), start.c (its process), input.c (the body of the request), output.c
 * (the response and error output) and redirect.c (local redirects).
 */
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
/* Closes the process, which has ended, and gives its place to another one. */
void run_close_child(struct run *r);
/* Frees the run, at the end of the turn, if nothing needs it any more. */
void run_release(struct run *r);
/* Waits for a place among the scripts that run, and starts. */
void run_enter(struct run *r);
/* Looks the script up, at first and for a redirect. */
void run_find(struct run *r);
/* Returns how much of a path is that of Match, without a slash at its end. */
size_t run_get_prefix_len(const struct cgi_conf *conf, struct mk_str path);
/*
 * Finds where a section without Script looks for the script of a path, and makes it the path there. Returns 0 or
 * -ENOENT: the path is that of a user, whose scripts are not run.
 */
int run_find_place(const struct cgi_conf *conf, const struct mk_host *host, struct mk_str *path,
                   struct mk_cgi_place *ret);
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
/* Tells whether the client may have the script of a redirect, whose path has a PATH_INFO, too; else refuses it. */
bool run_redirect_allows(struct run *r, struct mk_str name);
/* Continues with `next`: the process has ended. */
void run_redirect_continue(struct run *r);

/* ── a script that answers a request ── */

/* Finds the section for a path; NULL: none. Returns 0 or -errno: it is not known. */
int run_find_section(const struct mk_host *host, struct mk_str path, const struct section **ret);
/* Answers a request with a script of the section, now or later; also with an error. */
void run_begin(struct mk_request *req, struct thread *thread, const struct section *section);
/* Drops the scripts of a worker whose thread has ended: the starter ends them. */
void runs_stop(struct thread *thread, const struct mk_worker *worker);

#endif
