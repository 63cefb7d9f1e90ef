// SPDX-License-Identifier: Apache-2.0
/*
 * Where a worker's connections work one after the other: a batch of records on their way to a socket, and bytes of
 * files. A turn of a connection leaves both empty. It is the worker's own, and stays as long as any connection that
 * began at it.
 */
#ifndef TLS_WRITE_BUFFER_H
#define TLS_WRITE_BUFFER_H

#include <monkey/arena.h>

#include <stdint.h>
#include <sys/types.h>

enum {
    WRITE_BUFFER_FILE_BYTES = 64 * 1024,
    WRITE_BUFFER_RECORD_BYTES = 16384 + 256, /* one with everything around it */
    WRITE_BUFFER_BATCH_BYTES =
        WRITE_BUFFER_FILE_BYTES + 4 * 1024, /* what becomes of a file's bytes, whatever the records' size */
};

struct tls_conn;

struct write_buffer {
    struct mk_account *account;
    unsigned refs;
    size_t len;             /* of the batch */
    struct tls_conn *owner; /* of what is in it */
    char *file;             /* NULL until the first file */
    char batch[WRITE_BUFFER_BATCH_BYTES];
};

/* One holder. NULL without memory. */
struct write_buffer *write_buffer_new(struct mk_account *account);
struct write_buffer *write_buffer_get(struct write_buffer *d);
void write_buffer_put(struct write_buffer *d);
/* Bytes of a file, WRITE_BUFFER_FILE_BYTES at most, to d->file: the count, 0 at its end, -errno. */
ssize_t write_buffer_read_file(struct write_buffer *d, int file_fd, uint64_t offset, size_t size);

#endif
