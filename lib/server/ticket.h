// SPDX-License-Identifier: Apache-2.0
/*
 * The tickets of a worker (<monkey/ticket.h>), and the register of workers that other threads find them by.
 */
#ifndef MK_SERVER_TICKET_H
#define MK_SERVER_TICKET_H

#include <monkey/ticket.h>

/* A place that an exchange has while it has tickets. */
struct mk__ticket_slot {
    struct mk_request *req; /* NULL: free */
    uint64_t exchange;      /* the number of the one that has it, or had it last */
};

struct mk__tickets {
    uint64_t worker; /* its number */
    uint32_t place;  /* in the register */
    uint32_t size;
    uint32_t free; /* all below are taken */
    struct mk__ticket_slot *slots;
    struct mk_account *account;
};

/* The worker can be found from now on. 0 or -ENOBUFS. */
int mk__tickets_open(struct mk__tickets *t, struct mk_loop *loop, struct mk_account *account);
/* No call comes in after this; those that are on their way are in the loop's mail. */
void mk__tickets_close(struct mk__tickets *t);
/* After the last mail has been read. */
void mk__tickets_release(struct mk__tickets *t);

int mk__tickets_give(struct mk__tickets *t, struct mk_request *req, struct mk_ticket *ret);

#endif
