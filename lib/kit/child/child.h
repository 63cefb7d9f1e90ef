// SPDX-License-Identifier: Apache-2.0
#ifndef MK_KIT_CHILD_CHILD_H
#define MK_KIT_CHILD_CHILD_H

#include <monkey/kit/child.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Messages between the server and its starter: packets on Unix sockets, with descriptors. Both are the same program, so
 * a struct is sent as it lies in memory.
 */
enum mk__message_kind {
    MK__MESSAGE_ATTACH = 1, /* to the starter: a channel, a descriptor */
    MK__MESSAGE_START,      /* to the starter: a child; up to three descriptors */
    MK__MESSAGE_STOP,       /* to the starter: the child, and all that descends from it, is to end */
    MK__MESSAGE_REAP,       /* to the starter: the child is closed */
    MK__MESSAGE_STARTED,    /* from the starter: with a pidfd, or an error */
    MK__MESSAGE_EXITED,     /* from the starter: with a status */
};

enum { MK__MESSAGE_FDS_MAX = 3 };

/* After it: path, folder, arguments and variables, each string with a NUL. */
struct mk__message {
    uint32_t kind, id;
    uint32_t fd_bits;                                        /* which of stdin, stdout, stderr are sent */
    uint32_t path_bytes, folder_bytes, arg_bytes, env_bytes; /* with their NULs */
    int32_t pid, err, status;
    uint32_t step; /* enum mk_child_step */
    uint32_t grace_ms;
    struct mk_child_limits limits;
};

static_assert(sizeof(struct mk__message) == 12 * sizeof(uint32_t) + sizeof(struct mk_child_limits),
              "all bytes are sent");

enum { MK__MESSAGE_BYTES_MAX = sizeof(struct mk__message) + MK_CHILD_BYTES_MAX };

/* What a START has: strings of the packet. */
struct mk__message_parts {
    const char *path, *folder;
    char *argv[MK_CHILD_ARGS_MAX + 1], *envp[MK_CHILD_ENV_MAX + 1]; /* with a NULL at the end */
};

/*
 * Splits a packet of `len` bytes, which is a START and begins with its struct mk__message.
 * Returns 0, -EBADMSG (a length is not that of the packet, or a NUL is missing) or -E2BIG (too many strings).
 */
int mk__message_split(char *packet, size_t len, struct mk__message_parts *ret);

/* Makes a pair of sockets. Returns 0 or -errno. */
int mk__message_open_pair(int fds[2]);
/* Sends a packet with `n` descriptors. Returns 0 or -errno; -EAGAIN: later. */
int mk__message_send(int sock, struct mk_str packet, const int *fds, unsigned n);
/*
 * Receives a packet of at most `size` bytes, and up to MK__MESSAGE_FDS_MAX descriptors, close-on-exec, in `fds`.
 * Returns its bytes, 0 (the other end is closed, or the packet is empty), -EAGAIN or another -errno; -EBADMSG: it is
 * too long; -EMFILE: not all of its descriptors could be received, as this process may open no more, or they are too
 * many. `to` has the packet then, and the others are closed.
 */
ssize_t mk__message_receive(int sock, char *to, size_t size, int fds[MK__MESSAGE_FDS_MAX], unsigned *ret_n);

/*
 * Tags of processes: by its tag a descendant of a child is found whatever its parent, group and session are by now.
 *
 * The tag is the hard limit RLIMIT_LOCKS, which has no effect since Linux 2.4. fork(2) and execve(2) keep it, only a
 * process with CAP_SYS_RESOURCE can raise it, and other processes of the user can read it. The starters of a plugin, of
 * which one takes the place of another, have a range of tags, at random, and each child has one of them. After a fork:
 * nothing here allocates.
 */
enum { MK__TAG_INDEX_BITS = 12 };

struct mk__tags {
    uint64_t first;         /* 0: there are none */
    uint64_t begin, serial; /* the first serial number of this starter, and the next one */
};

/* Chooses the signal for a process, by its tag; 0: it has none. Returns 0: no signal. */
typedef int (*mk__tag_choose_fn)(pid_t pid, uint64_t tag);

/* Chooses the range. There is none if the limit of this process is low already. */
void mk__tag_open(struct mk__tags *tags);
/* Begins to use the range in a starter, whose number tells its tags from others. None if limits cannot be set. */
void mk__tag_begin(struct mk__tags *tags, uint64_t starter);
/* Returns a tag with an index below 2^MK__TAG_INDEX_BITS; 0: there are none. */
uint64_t mk__tag_new(struct mk__tags *tags, unsigned index);
/* Returns the index of a tag of this range. */
unsigned mk__tag_index(const struct mk__tags *tags, uint64_t tag);
/* Tells whether this starter has made a tag of the range, not a former one. */
bool mk__tag_is_own(const struct mk__tags *tags, uint64_t tag);
/* Calls `choose` for each process, zombies included, twice if it returns a signal, and sends that one. */
void mk__tag_each(const struct mk__tags *tags, mk__tag_choose_fn choose);

/* ── starts one program, in the starter ── */

/* What to start; all of it is valid until the call returns. */
struct mk__spawn {
    const char *path, *folder;
    char *const *argv;
    char *const *envp;
    const int *fds; /* three; -1: that of the caller */
    const struct mk_child_limits *limits;
    uint64_t tag; /* see above; 0: none */
};

/*
 * Starts it, and returns once it runs: in its own session, without signals that are blocked or ignored.
 * Returns its number, with a pidfd in `ret_pidfd`, or -errno with the step that has failed.
 */
pid_t mk__spawn_start(const struct mk__spawn *s, int *ret_pidfd, enum mk_child_step *ret_step);

/* ── the connection of a thread to the starter, and its messages ── */

/* The states of a child, in mk_child.state. */
enum mk__child_state {
    MK__CHILD_CLOSED,
    MK__CHILD_QUEUED, /* its message waits for the channel */
    MK__CHILD_ASKED,  /* the starter has the message */
    MK__CHILD_RUNNING,
    MK__CHILD_ENDED,
};

/*
 * Has the children sent that are QUEUED, at the end of the turn or once there is a connection; makes one if there is
 * none.
 */
void mk__channel_flush(struct mk_child_channel *channel);
/* Adds a child after the others and gives it a number. Returns 0 or -ENOBUFS. */
int mk__channel_add(struct mk_child_channel *channel, struct mk_child *child);
/* Takes a child off its channel. */
void mk__channel_remove(struct mk_child_channel *channel, struct mk_child *child);
/* Has the starter end a child and all that descends from it: SIGTERM, and SIGKILL after a time. */
void mk__channel_send_stop(struct mk_child_channel *channel, uint32_t id, uint32_t grace_ms);
/* Tells the starter that a child which has ended is closed. */
void mk__channel_send_reap(struct mk_child_channel *channel, uint32_t id);
/* The starter has not answered in time. */
void mk__channel_drop_starter(struct mk_child_channel *channel);

struct mk_loop *mk__channel_loop(const struct mk_child_channel *channel);

/* ── child.c ── */

/* A message of the starter about the child. Takes `pidfd` over, -1: none. */
void mk__child_take_started(struct mk_child *child, const struct mk__message *m, int pidfd);
void mk__child_take_exited(struct mk_child *child, int status);
/* Its start has failed. */
void mk__child_fail(struct mk_child *child, int err, enum mk_child_step step);
/*
 * The starter has ended, and with it the kernel ends the child, which runs: its end is awaited by `event`. If that
 * cannot be, the descriptor of the event is -1, and mk__child_take_exited() must follow.
 */
void mk__child_lose_starter(struct mk_child *child);
/* Frees what the child holds, and takes it off its channel. */
void mk__child_release(struct mk_child *child);

/* ── the server's side of the starter: forking it, and channels to it ── */

/* Which starter it is, of those that were forked one after the other. */
struct mk__starter_id {
    uint64_t serial;
    pid_t pid;
};

/*
 * Opens a channel to the starter, which is forked if there is none. May block: for a job. Any thread.
 * Returns a descriptor, -EAGAIN (the starter has ended twice within a second) or another -errno, and in `*ret_id` which
 * starter it is.
 */
int mk__starter_connect(struct mk_child_starter *starter, struct mk__starter_id *ret_id);
/*
 * Kills a starter that does not answer. Does nothing if another one has taken its place. Any thread; does not wait,
 * also if another one forks: that one kills it then.
 */
void mk__starter_kill(struct mk_child_starter *starter, uint64_t serial);
/*
 * Reaps a starter that has ended. Does nothing if that was done. Any thread; does not wait, also if another one forks:
 * that one reaps it then.
 */
void mk__starter_reap(struct mk_child_starter *starter, uint64_t serial);

/* ── what the process does that starts others ── */

/*
 * Kills what starters of former numbers have left behind, and serves the channels that come over the socket `control`
 * until that is closed and all children have ended.
 */
_Noreturn void mk__starter_loop_run(int control, const struct mk__tags *tags, uint64_t number);

#endif
