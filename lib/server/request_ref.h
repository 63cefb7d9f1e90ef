// SPDX-License-Identifier: Apache-2.0
/*
 * The tickets of a worker (<monkey/request_ref.h>), and the register of workers that other threads find them by.
 */
#ifndef MK_SERVER_REQUEST_REF_H
#define MK_SERVER_REQUEST_REF_H

#include <monkey/request_ref.h>

/* A place that an exchange has while it has tickets. */
struct mk__request_ref_slot {
    struct mk_request *req; /* NULL: free */
    uint64_t exchange;      /* the number of the one that has it, or had it last */
};

struct mk__request_refs {
    uint64_t worker; /* its number */
    uint32_t entry;  /* in the register */
    uint32_t size;
    uint32_t free; /* all below are taken */
    struct mk__request_ref_slot *slots;
    struct mk_account *account;
};

/* The worker can be found from now on. 0 or -ENOBUFS. */
int mk__request_ref_open(struct mk__request_refs *t, struct mk_loop *loop, struct mk_account *account);
/* No call comes in after this; those that are on their way are in the loop's mail. */
void mk__request_ref_close(struct mk__request_refs *t);
/* After the last mail has been read. */
void mk__request_ref_release(struct mk__request_refs *t);

int mk__request_ref_create(struct mk__request_refs *t, struct mk_request *req, struct mk_request_ref *ret);

#endif
