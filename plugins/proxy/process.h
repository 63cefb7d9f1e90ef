// SPDX-License-Identifier: Apache-2.0
/*
 * What this plugin keeps for the process and for a generation.
 */
#ifndef PROXY_PROCESS_H
#define PROXY_PROCESS_H

#include "budgets.h"
#include "clients.h"

#include <monkey/threads.h>

extern const struct mk_plugin mk_plugin_proxy;

struct process {
    struct mk_threads threads;
    struct budgets budgets;
};

struct generation {
    struct clients clients;
    struct budget *budget; /* NULL: no section has bodies that wait */
};

#endif
