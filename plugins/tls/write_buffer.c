// SPDX-License-Identifier: Apache-2.0
/*
 * Makes, counts and fills write buffers (write_buffer.h). One thread.
 */
#include "write_buffer.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

struct write_buffer *write_buffer_new(struct mk_account *account)
{
    struct write_buffer *buffer = mk_account_alloc(account, sizeof(*buffer));
    if (!buffer)
        return NULL;
    buffer->account = account;
    buffer->refs = 1;
    buffer->len = 0;
    buffer->owner = NULL;
    buffer->file = NULL;
    return buffer;
}

struct write_buffer *write_buffer_get(struct write_buffer *buffer)
{
    assert(buffer->refs > 0);
    buffer->refs++;
    return buffer;
}

void write_buffer_put(struct write_buffer *buffer)
{
    assert(buffer->refs > 0);
    if (--buffer->refs)
        return;
    assert(buffer->len == 0); /* each connection has sent or dropped its records */
    if (buffer->file)
        mk_account_free(buffer->account, buffer->file, WRITE_BUFFER_FILE_BYTES);
    mk_account_free(buffer->account, buffer, sizeof(*buffer));
}

ssize_t write_buffer_read_file(struct write_buffer *buffer, int file_fd, uint64_t offset, size_t size)
{
    assert(size > 0);
    if (!buffer->file)
        buffer->file = mk_account_alloc(buffer->account, WRITE_BUFFER_FILE_BYTES);
    if (!buffer->file)
        return -ENOMEM;
    ssize_t n =
        pread(file_fd, buffer->file, size < WRITE_BUFFER_FILE_BYTES ? size : WRITE_BUFFER_FILE_BYTES, (off_t)offset);
    return n < 0 ? -errno : n;
}
