// SPDX-License-Identifier: Apache-2.0
/*
 * How many processors this process may use.
 */
#ifndef MK_SERVER_CPUS_H
#define MK_SERVER_CPUS_H

#include <sched.h>

/* By its affinity and by the limits of its cgroup (v2 or v1); at least 1. */
unsigned mk__cpus_count(void);

/* Leaves one of the set: the n-th, counted from 0 and round again. */
void mk__cpus_pick(cpu_set_t *set, unsigned n);

#endif
