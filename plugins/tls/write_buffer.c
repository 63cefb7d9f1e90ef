// SPDX-License-Identifier: Apache-2.0
/*
 * Makes, counts and fills write buffers (write_buffer.h). One thread.
 */
#include "write_buffer.h"

#include <errno.h>
#include <unistd.h>

struct write_buffer *write_buffer_new(struct mk_account *account)
{
    struct write_buffer *d = mk_account_alloc(account, sizeof(*d));
    if (!d)
        return NULL;
    d->account = account;
    d->refs = 1;
    d->len = 0;
    d->owner = NULL;
    d->file = NULL;
    return d;
}

struct write_buffer *write_buffer_get(struct write_buffer *d)
{
    d->refs++;
    return d;
}

void write_buffer_put(struct write_buffer *d)
{
    if (--d->refs)
        return;
    if (d->file)
        mk_account_free(d->account, d->file, WRITE_BUFFER_FILE_BYTES);
    mk_account_free(d->account, d, sizeof(*d));
}

ssize_t write_buffer_read_file(struct write_buffer *d, int file_fd, uint64_t offset, size_t size)
{
    if (!d->file)
        d->file = mk_account_alloc(d->account, WRITE_BUFFER_FILE_BYTES);
    if (!d->file)
        return -ENOMEM;
    ssize_t n = pread(file_fd, d->file, size < WRITE_BUFFER_FILE_BYTES ? size : WRITE_BUFFER_FILE_BYTES, (off_t)offset);
    return n < 0 ? -errno : n;
}
