// SPDX-License-Identifier: Apache-2.0
/*
 * The processors that this process may use. Any thread.
 */
#ifndef MK_SERVER_CPUS_H
#define MK_SERVER_CPUS_H

#include <monkey/status.h>

#include <sched.h>

/* Returns the number of processors by affinity and by control groups; at least 1. */
unsigned mk__cpus_count(void);

/* Reads a control group's text such as "max 100000" or "250000 100000" (cpu.max). Returns processors; 0: no limit. */
MK_COLD unsigned mk__cpus_from_quota(const char *text);

/* Leaves only the n-th processor of the set, counted from 0 and modulo the number of processors. */
MK_COLD void mk__cpus_pick(cpu_set_t *set, unsigned n);

#endif
