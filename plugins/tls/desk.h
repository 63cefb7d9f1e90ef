// SPDX-License-Identifier: Apache-2.0
/*
 * Where a worker's connections work one after the other: a batch of records on their way to a socket, and bytes of
 * files. A turn of a connection leaves both empty. It is the worker's own, and stays as long as any connection that
 * began at it.
 */
#ifndef TLS_DESK_H
#define TLS_DESK_H

#include <monkey/arena.h>

#include <stdint.h>
#include <sys/types.h>

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
/* Bytes of a file, DESK_FILE_BYTES at most, to d->file: the count, 0 at its end, -errno. */
ssize_t desk_read(struct desk *d, int file_fd, uint64_t offset, size_t size);

#endif
