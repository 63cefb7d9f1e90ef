// SPDX-License-Identifier: Apache-2.0
/*
 * Forks the starter, on a disk thread, when a channel needs one: by then the server has become its user. If
 * the starter ends, which it does not do by itself, a channel that notices it has it reaped, and the next one gets
 * another starter, which kills what the first one has left.
 */
#include "child.h"

#include <monkey/base/time.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 3000, AGAIN_MS = 1000 };

struct mk_child_starter {
    pthread_mutex_t lock; /* of all below */
    pid_t pid;            /* 0: there is none */
    int control;          /* -1: likewise */
    uint64_t serial, forked_ms;
    struct mk__tags tags; /* once there was a starter */
    bool has_left;        /* the last one was killed, and its children may have left processes behind */
    /* the serials of one to be killed, and of one that has ended; 0: none. Not under the lock */
    _Atomic uint64_t doomed, ended;
};

int mk_child_starter_new(struct mk_child_starter **ret)
{
    struct mk_child_starter *s = mk_account_alloc(NULL, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct mk_child_starter){.lock = PTHREAD_MUTEX_INITIALIZER, .control = -1};
    *ret = s;
    return 0;
}

/* Waits until the starter has ended, at most `ms`. Returns false if the time is over. */
static bool wait_for_end(pid_t pid, int ms)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return false;
    bool has_ended = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ms) > 0;
    close(fd);
    return has_ended;
}

/* Ends the starter that there is, and reaps it. */
static void end_starter(struct mk_child_starter *s, int ms)
{
    if (s->control >= 0)
        close(s->control);
    s->control = -1;
    if (!s->pid)
        return;
    int status = 0;
    bool is_late = !wait_for_end(s->pid, ms) && ms; /* it has killed them, and they hang in the kernel */
    kill(s->pid, SIGKILL);                          /* it has not been reaped: the number is its own */
    while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
        ;
    s->pid = 0;
    s->has_left = status != 0 && !is_late; /* it was killed, or could not begin with what the former one has left */
}

/* Forks the starter. Under the lock. Returns 0 or -errno. */
static int fork_starter(struct mk_child_starter *s)
{
    int pair[2];
    uint64_t now = mk_time_monotonic_ms();
    if (s->forked_ms && now - s->forked_ms < AGAIN_MS)
        return -EAGAIN;
    int err = mk__message_open_pair(pair);
    if (err < 0)
        return err;
    if (!s->serial)
        mk__tag_open(&s->tags);
    pid_t pid = fork();
    if (pid == 0)
        mk__starter_loop_run(pair[1], &s->tags, s->serial);
    err = pid < 0 ? -errno : 0;
    close(pair[1]);
    if (err < 0) {
        close(pair[0]);
        return err;
    }
    s->pid = pid;
    s->control = pair[0];
    s->forked_ms = now + !now;
    s->serial++;
    return 0;
}

void mk_child_starter_free(struct mk_child_starter *starter)
{
    if (!starter)
        return;
    end_starter(starter, END_MS);
    if (starter->has_left) { /* another one kills what the last one has left */
        starter->forked_ms = 0;
        fork_starter(starter);
        end_starter(starter, END_MS);
    }
    pthread_mutex_destroy(&starter->lock);
    mk_account_free(NULL, starter, sizeof(*starter));
}

/* Sends the starter its end of a channel. Returns 0 or -errno. */
static int attach_channel(const struct mk_child_starter *s, int fd)
{
    const struct mk__message m = {.kind = MK__MESSAGE_ATTACH};
    return s->control < 0 ? -EPIPE : mk__message_send(s->control, mk_str((const char *)&m, sizeof(m)), &fd, 1);
}

/* Sends the end to the starter, or to a new one. Under the lock. */
static int attach_or_fork(struct mk_child_starter *s, int fd)
{
    int err = attach_channel(s, fd);
    if (err == 0)
        return 0;
    end_starter(s, 0);
    err = fork_starter(s);
    return err < 0 ? err : attach_channel(s, fd);
}

/* Kills the starter that is doomed, or reaps the one that has ended. Under the lock. */
static void end_noted(struct mk_child_starter *s)
{
    uint64_t doomed = atomic_exchange(&s->doomed, 0), ended = atomic_exchange(&s->ended, 0);
    if (s->pid && s->serial == doomed)
        kill(s->pid, SIGKILL);
    if (s->pid && s->serial == ended)
        end_starter(s, 0);
}

/* Does what was noted about the starter, unless another thread has the lock: that one does it then. */
static void handle_notes(struct mk_child_starter *s)
{
    while ((atomic_load(&s->doomed) || atomic_load(&s->ended)) && pthread_mutex_trylock(&s->lock) == 0) {
        end_noted(s);
        pthread_mutex_unlock(&s->lock);
    }
}

int mk__starter_connect(struct mk_child_starter *starter, struct mk__starter_id *ret_id)
{
    int pair[2];
    int err = mk__message_open_pair(pair);
    if (err < 0)
        return err;
    pthread_mutex_lock(&starter->lock);
    err = attach_or_fork(starter, pair[1]);
    *ret_id = (struct mk__starter_id){starter->serial, starter->pid};
    pthread_mutex_unlock(&starter->lock);
    handle_notes(starter);
    close(pair[1]);
    if (err == 0)
        return pair[0];
    close(pair[0]);
    return err;
}

void mk__starter_kill(struct mk_child_starter *starter, uint64_t serial)
{
    atomic_store(&starter->doomed, serial);
    handle_notes(starter);
}

void mk__starter_reap(struct mk_child_starter *starter, uint64_t serial)
{
    atomic_store(&starter->ended, serial);
    handle_notes(starter);
}
