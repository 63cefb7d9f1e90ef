// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that a server runs for its workers: scripts, and programs that serve requests. A starter, a process that is
 * forked once, starts them, so that a worker never forks; of the server it holds only its sockets.
 *
 *     worker ── mk_child_start(), mk_child_stop() ──► starter ── clone, execve ──► child (its own session)
 *        ◄──────────── started(), ended() ─────────────┘  └── SIGTERM, SIGKILL ──────┘
 *
 * A child gets the descriptors, variables and arguments that it is given and no others, the server's user without its
 * capabilities, default signals, no_new_privs and the limits that are set. Only root can read the starter's memory.
 * A stop ends the child and all that descends from it, whatever its parent, group and session are by then.
 * If the server ends, however it does, the starter ends the children, SIGTERM first, and itself. If the starter is
 * killed, the kernel kills the children.
 *
 * Thread: a channel and its children belong to one loop. No function blocks, but those of the starter, which say so.
 *
 *     start, stop             mk_child_starter_new()             mk_child_starter_free()
 *     a thread's first use    mk_child_channel_open()            mk_child_channel_close(), when its last worker stops
 *     a child                 mk_child_start() ─► started() ─► ended() ─► mk_child_close()
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_CHILD_H
#define MONKEY_CHILD_H

#include "../conf.h"
#include "../loop.h"
#include "../plugin.h"

MK_C_BEGIN

enum {
    MK_CHILD_BYTES_MAX = 128 * 1024, /* of path, folder, arguments and variables together */
    MK_CHILD_ARGS_MAX = 64,
    MK_CHILD_ENV_MAX = 512,
    MK_CHILD_RUNNING_MAX = 4096, /* children of one starter */
    MK_CHILD_QUEUE_MAX = 1024,   /* children of a channel that wait for the starter */
    MK_CHILD_START_MS = 10000,   /* how long a start may take */
};

/* ── the starter: one for a plugin ── */

struct mk_child_starter;

/* Makes the record of a starter, for a plugin's start. No process is forked before one is needed. Returns 0 or -ENOMEM.
 */
MK_API int mk_child_starter_new(struct mk_child_starter **ret);
/*
 * Ends the starter, for a plugin's stop: all channels are closed. May block for as long as children take that ignore
 * SIGTERM, 3 seconds at most. NULL is allowed.
 */
MK_API void mk_child_starter_free(struct mk_child_starter *starter);

/* ── channels: one for a thread ── */

struct mk_child_channel;

/* Opens a channel in the loop's thread; `account` outlives it, NULL: none. Returns 0 or -ENOMEM. */
MK_API int mk_child_channel_open(struct mk_child_starter *starter, struct mk_loop *loop, struct mk_account *account,
                                 struct mk_child_channel **ret);
/*
 * Closes it: no callback follows, and the children that are left are ended by the starter. In the loop's thread, or in
 * a worker_stop whose thread has ended. NULL is allowed.
 */
MK_API void mk_child_channel_close(struct mk_child_channel *channel);

/* ── children ── */

/* 0: not set. Of files 1024 is usual then, since programs of old take more for an error. */
struct mk_child_limits {
    uint64_t memory_bytes, cpu_seconds, files, processes; /* setrlimit(2): AS, CPU, NOFILE, NPROC */
};

/* Parses `memory=256M cpu=30s files=64 processes=32`, any of them, into struct mk_child_limits; mk_conf_parse_fn. */
MK_API int mk_child_parse_limits(const struct mk_conf_value *value, void *limits, struct mk_arena *arena,
                                 struct mk_buf *error);

struct mk_child_options {
    const char *path;        /* of the program, absolute */
    const char *folder;      /* to work in; NULL: "/" */
    struct mk_str args, env; /* each string ends with a NUL; argv[0] is the first argument; NAME=value */
    int fds[3];              /* stdin, stdout, stderr; -1: /dev/null. mk_child_start() takes them over in any case */
    struct mk_child_limits limits;
};

/* Where a start has failed. */
enum mk_child_step {
    MK_CHILD_STARTER,
    MK_CHILD_FORK,
    MK_CHILD_LIMITS,
    MK_CHILD_FOLDER,
    MK_CHILD_EXEC,
    MK_CHILD_RIGHTS, /* giving up capabilities */
};

struct mk_child;

struct mk_child_events {
    /* The program runs (`err` 0), or could not be started (-errno): the child is closed then. */
    void (*started)(struct mk_child *child, int err, enum mk_child_step step);
    /*
     * The program has ended, with a status as of waitpid(2); -1: the starter has ended, and the kernel has killed the
     * program, unless that had just ended. What it has forked may still run.
     */
    void (*ended)(struct mk_child *child, int status);
};

/* Embedded in a struct of the caller, which stays until the child is closed. Its members are the library's. */
struct mk_child {
    struct mk_list node;
    struct mk_child_channel *channel; /* NULL: it is closed */
    struct mk_worker *worker;         /* until the program runs; NULL: none */
    const struct mk_child_events *events;
    uint32_t id;
    uint8_t state;
    bool is_stopped; /* mk_child_stop() was called */
    bool is_lost;    /* its starter has ended */
    int pid, pidfd;
    int fds[3];
    uint32_t grace_ms;
    struct mk_timer timer;
    struct mk_event event; /* of the pidfd, once it is lost */
    struct mk_buf message;
};

/*
 * Starts a program; copies the options. The events are called later, in the loop's thread. `worker` stays until
 * `started` is called: it is held while a job is under way.
 * Returns 0, -E2BIG (more than MK_CHILD_BYTES_MAX, _ARGS_MAX or _ENV_MAX), -ENOBUFS (MK_CHILD_QUEUE_MAX wait already)
 * or -ENOMEM: the child is closed then, and no event follows.
 */
MK_API int mk_child_start(struct mk_child *child, struct mk_child_channel *channel, struct mk_worker *worker,
                          const struct mk_child_events *events, const struct mk_child_options *options);
/*
 * Has SIGTERM sent to the program and its descendants, now or when the program runs, and SIGKILL after `grace_ms`, or
 * to what is left when the program has ended. `ended` follows as usual. A second call does nothing.
 */
MK_API void mk_child_stop(struct mk_child *child, uint32_t grace_ms);
/*
 * Closes a child that has ended: its number becomes free for other processes. The caller's struct may be freed. Does
 * nothing if it is closed, or was never started and is all zeros.
 */
MK_API void mk_child_close(struct mk_child *child);

/*
 * Leaves a child whose thread has ended to the starter, which ends it when the channel is closed: no event follows. For
 * a worker_stop. Does nothing if it is closed, or all zeros.
 */
MK_API void mk_child_drop(struct mk_child *child);

/* Returns the number of a program that runs, for logs; 0: it is not known. */
MK_API int mk_child_pid(const struct mk_child *child);
/* Appends what a status means, as part of a sentence: "ended with status 1", "was killed by signal 9". */
MK_API void mk_child_print_status(int status, struct mk_buf *out);
/* Returns what a step does, as part of a sentence: "cannot be executed"; a literal. */
MK_API const char *mk_child_step_text(enum mk_child_step step);

MK_C_END

#endif
