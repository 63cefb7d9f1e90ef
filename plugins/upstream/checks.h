// SPDX-License-Identifier: Apache-2.0
/*
 * The checks of a generation: of each server of the groups that are checked. They run once for all workers (runner.h).
 *
 *     generation_start   checks_add()
 *     host_start         checks_open(): settings of TLS, and mistakes of the configuration
 *     generation_stop    checks_free()
 */
#ifndef UPSTREAM_CHECKS_H
#define UPSTREAM_CHECKS_H

#include "check.h"
#include "runner.h"

/* Those of a group. */
struct check_group {
    struct check_group *next;
    const struct mk_upstream_group *group;
    const struct check_conf *conf;
    struct check_client client;
    struct check *first; /* NULL: it is not checked */
    uint32_t version;    /* of the servers that have checks */
};

struct checks {
    struct runner_user user;
    struct check_group *first;
    struct mk_worker *worker; /* while they run */
    struct mk_timer timer;    /* looks for servers of names that have come and gone */
    bool is_open;             /* checks_open() was called */
};

void checks_init(struct checks *checks);
/* Adds those of a group, which lasts as long. Returns 0 or -ENOMEM. */
int checks_add(struct checks *checks, const struct mk_upstream_group *group, const struct check_conf *conf);
/*
 * Opens the settings of TLS, and reports mistakes at their keys; the first call does it for all. Returns 0, -EINVAL or
 * -ENOMEM.
 */
int checks_open(struct checks *checks, struct mk_host *host);
/* Frees them; they do not run. */
void checks_free(struct checks *checks);

#endif
