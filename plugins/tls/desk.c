// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a desk (desk.h). One thread.
 */
#include "desk.h"

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

char *desk_file(struct desk *d)
{
    if (!d->file)
        d->file = mk_account_alloc(d->account, DESK_FILE_BYTES);
    return d->file;
}
