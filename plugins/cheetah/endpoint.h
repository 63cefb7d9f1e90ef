// SPDX-License-Identifier: Apache-2.0
/*
 * The Unix socket at which shells connect. Generations with the same path share it, so that a reload keeps it.
 *
 * An upgrade passes the socket on (mk_socket_keep()). A path in use by another server that lives is refused; the socket
 * of a server that has died is replaced.
 */
#ifndef CHEETAH_ENDPOINT_H
#define CHEETAH_ENDPOINT_H

#include <monkey/buf.h>
#include <monkey/loop.h>
#include <monkey/str.h>

#include <stdint.h>
#include <sys/types.h>

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
    bool watched;      /* its event is in `loop` */
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
const char *endpoint_default_path(struct endpoints *all);

#endif
