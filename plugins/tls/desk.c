// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a desk (desk.h). One thread.
 */
#include "desk.h"

#include <errno.h>
#include <unistd.h>

struct desk *desk_new(struct mk_account *account)
{
    struct desk *d = mk_account_alloc(account, sizeof(*d));
    if (!d)
        return NULL;
    d->account = account;
    d->holders = 1;
    d->len = 0;
    d->owner = NULL;
    d->file = NULL;
    return d;
}

struct desk *desk_get(struct desk *d)
{
    d->holders++;
    return d;
}

void desk_put(struct desk *d)
{
    if (--d->holders)
        return;
    if (d->file)
        mk_account_free(d->account, d->file, DESK_FILE_BYTES);
    mk_account_free(d->account, d, sizeof(*d));
}

ssize_t desk_read(struct desk *d, int file_fd, uint64_t offset, size_t size)
{
    if (!d->file)
        d->file = mk_account_alloc(d->account, DESK_FILE_BYTES);
    if (!d->file)
        return -ENOMEM;
    ssize_t n = pread(file_fd, d->file, size < DESK_FILE_BYTES ? size : DESK_FILE_BYTES, (off_t)offset);
    return n < 0 ? -errno : n;
}
