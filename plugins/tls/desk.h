// SPDX-License-Identifier: Apache-2.0
/*
 * Where a worker's connections work one after the other: a batch of records on their way to a socket, and bytes of
 * files. A turn of a connection leaves both empty. It is the worker's own, and stays as long as any connection that
 * began at it.
 */
#ifndef TLS_DESK_H
#define TLS_DESK_H

#include <monkey/arena.h>

enum {
    DESK_FILE_BYTES = 64 * 1024,
    DESK_RECORD_BYTES = 16384 + 256,               /* one with everything around it */
    DESK_BATCH_BYTES = DESK_FILE_BYTES + 4 * 1024, /* what becomes of a file's bytes, whatever the records' size */
};

struct session;

struct desk {
    struct mk_account *account;
    unsigned holders;
    size_t len;            /* of the batch */
    struct session *owner; /* of what is in it */
    char *file;            /* NULL until the first file */
    char batch[DESK_BATCH_BYTES];
};

/* One holder. NULL without memory. */
struct desk *desk_new(struct mk_account *account);
struct desk *desk_get(struct desk *d);
void desk_put(struct desk *d);
/* Room for DESK_FILE_BYTES; NULL without memory. */
char *desk_file(struct desk *d);

#endif
