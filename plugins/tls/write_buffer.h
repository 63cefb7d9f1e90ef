// SPDX-License-Identifier: Apache-2.0
/*
 * A buffer that the connections of a worker use one after the other: a batch of records for a socket, and bytes of
 * files. Both are empty after a connection's turn. It is counted by reference: a connection that outlives the worker's
 * generation keeps it.
 */
#ifndef TLS_WRITE_BUFFER_H
#define TLS_WRITE_BUFFER_H

#include <monkey/base/arena.h>

#include <stdint.h>
#include <sys/types.h>

enum {
    WRITE_BUFFER_FILE_BYTES = 64 * 1024,
    WRITE_BUFFER_RECORD_BYTES = 16384 + 256,                       /* with header and tag */
    WRITE_BUFFER_BATCH_BYTES = WRITE_BUFFER_FILE_BYTES + 4 * 1024, /* the records for these bytes, of any size */
};

struct tls_conn;

struct write_buffer {
    struct mk_account *account;
    unsigned refs;
    size_t len;             /* bytes in `batch` */
    struct tls_conn *owner; /* whose records they are */
    char *file;             /* NULL until the first file */
    char batch[WRITE_BUFFER_BATCH_BYTES];
};

/* Returns a buffer with one reference; NULL without memory. */
struct write_buffer *write_buffer_new(struct mk_account *account);
struct write_buffer *write_buffer_get(struct write_buffer *buffer);
void write_buffer_put(struct write_buffer *buffer);
/* Reads bytes of a file, WRITE_BUFFER_FILE_BYTES at most, into buffer->file. Returns their count, 0 (the end) or
 * -errno. */
ssize_t write_buffer_read_file(struct write_buffer *buffer, int file_fd, uint64_t offset, size_t size);

#endif
