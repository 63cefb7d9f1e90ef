// SPDX-License-Identifier: Apache-2.0
/*
 * The connection to a server: a line is sent, objects come back, up to the one with "end".
 */
#ifndef SHELL_LINK_H
#define SHELL_LINK_H

#include "object.h"

#include <monkey/buf.h>

struct link {
    int fd;
    struct mk_buf in;
    /* Waits until `fd` can be read, in place of poll(2). Returns 0, or -errno: the answer is given up. NULL: none. */
    int (*wait)(struct link *l, void *ctx);
    void *wait_ctx;
    char path[512];
};

/*
 * Connects to the socket at `path`; NULL: to the first that exists of $MONKEY_SHELL_SOCKET, the user's and the
 * system's. Returns 0, or -errno after a message on stderr.
 */
int link_open(struct link *l, const char *path);
void link_close(struct link *l);

/* Is called for each object but the last, with the line as it came. Returns false to ask for the end of a stream. */
typedef bool (*link_fn)(struct object *o, const char *line, void *ctx);

/*
 * Sends a line and passes the answer on. `wait_fd` (-1: none): input there ends an answer that continues (trace).
 * Returns 1 (done), 0 (the command has failed: `error` has the sentence) or -errno (the connection is lost).
 */
int link_ask(struct link *l, struct mk_str line, int wait_fd, link_fn fn, void *ctx, struct mk_buf *error);

/* Appends words as a line that the server takes: a JSON array. */
void link_add_words(struct mk_buf *out, char *const *words, int n);

#endif
