// SPDX-License-Identifier: Apache-2.0
/*
 * The request references of a worker (<monkey/request_ref.h>), and the process's register of workers, by which other
 * threads find the worker of a reference. The functions run in the worker's thread, or while that does not run.
 */
#ifndef MK_SERVER_REQUEST_REF_H
#define MK_SERVER_REQUEST_REF_H

#include <monkey/request_ref.h>

/* A slot that an exchange occupies from its first reference to its end. */
struct mk__request_ref_slot {
    struct mk_request *req; /* NULL: free */
    uint64_t exchange;      /* the number of the exchange that has or had the slot */
};

struct mk__request_refs {
    uint64_t worker; /* a number that is never used again */
    uint32_t entry;  /* index in the register */
    uint32_t size;
    uint32_t free; /* all slots below this index are taken */
    struct mk__request_ref_slot *slots;
    struct mk_account *account;
};

/* Enters the worker into the register. Returns 0 or -ENOBUFS. */
int mk__request_ref_open(struct mk__request_refs *t, struct mk_loop *loop, struct mk_account *account);
/* Refuses calls from now on; those that were accepted are in the loop's inbox. */
void mk__request_ref_close(struct mk__request_refs *t);
/* Frees the slots and the entry, when the loop's inbox has been processed. */
void mk__request_ref_release(struct mk__request_refs *t);

/* Makes a reference to the exchange. Returns 0 or -ENOMEM. */
int mk__request_ref_create(struct mk__request_refs *t, struct mk_request *req, struct mk_request_ref *ret);

#endif
