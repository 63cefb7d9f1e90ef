// SPDX-License-Identifier: Apache-2.0
/*
 * The logs of hosts, and those of a generation, which several hosts may share.
 */
#ifndef LOGGER_HOSTS_H
#define LOGGER_HOSTS_H

#include <monkey/log_writer.h>
#include <monkey/plugin.h>

#include "settings.h"

/* The logs of a generation, each once. Workers have a producer for each row, hosts have the index of a row. */
struct log_table {
    struct mk_log_writer *writer;
    struct log_table_row {
        struct mk_log_target *target;
        bool wait; /* a host has WhenFull wait for it */
    } * rows;
    unsigned n, max;
    unsigned sections; /* of all hosts */
};

/* One section of a host. */
struct logger_logs {
    const struct logger_host_conf *settings;
    const struct format *formats[LOGS];
    unsigned number;   /* among the sections of all hosts */
    int indexes[LOGS]; /* -1: off */
};

struct logger_host {
    unsigned n, n_own; /* those of monkey.conf follow the host's own */
    struct logger_logs logs[];
};

/* Hooks of the plugin (struct mk_plugin). The state of a generation is a struct log_table, of a host a logger_host. */
int hosts_start_generation(struct mk_generation *g, void **ret_state);
void hosts_stop_generation(struct mk_generation *g, void *state);
int hosts_start(struct mk_host *host, void **ret_state);
void hosts_stop(struct mk_host *host, void *state);

/*
 * Finds the next section of a host (or NULL) from `*at` on that has the path, and moves `*at` after it. Those of
 * monkey.conf count only if none of the host's own has it. `*at` and `*own` are 0 and false at first.
 */
const struct logger_logs *hosts_find_logs(const struct logger_host *h, struct mk_str path, unsigned *at, bool *own);

#endif
