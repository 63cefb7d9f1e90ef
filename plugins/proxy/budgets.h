// SPDX-License-Identifier: Apache-2.0
/*
 * The budget of the process for bodies that wait, as [SPOOL] says. It lasts over reloads. A reload that names another
 * folder makes another budget; the former one lasts as long as a generation with bodies in it.
 *
 * In the hooks of the configuration, of which one runs at a time, unless it says otherwise.
 */
#ifndef PROXY_BUDGETS_H
#define PROXY_BUDGETS_H

#include "conf.h"

#include <monkey/spool.h>

/* That of a folder. */
struct budget {
    struct budget *next;
    struct mk_spool_budget *spools;
    unsigned refs; /* generations */
    int err;       /* of the folder: no files are made; 0: none */
    size_t bytes;  /* of this struct */
    char folder[];
};

/* Those of the process. */
struct budgets {
    struct budget *first;
};

/* Finds or makes the budget of a configuration, and holds it. Limits of one that exists stay. NULL: no memory. */
struct budget *budgets_hold(struct budgets *all, const struct spool_conf *conf);
/* Ends a hold. */
void budgets_put(struct budgets *all, struct budget *b);
/* Sets the limits, once the configuration is in use. Any thread. */
void budget_set_limits(struct budget *b, const struct spool_conf *conf);

#endif
