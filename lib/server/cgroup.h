// SPDX-License-Identifier: Apache-2.0
/*
 * The processor limits of control groups, v2 or v1. Left out of small builds.
 */
#ifndef MK_SERVER_CGROUP_H
#define MK_SERVER_CGROUP_H

/* Returns how many processors the process's control groups allow, rounded up, or 0: there is no limit. */
unsigned mk__cgroup_count_cpus(void);

/* Reads a text such as "max 100000" or "250000 100000" (cpu.max). Returns processors, rounded up; 0: no limit. */
unsigned mk__cgroup_cpus_from_quota(const char *text);

#endif
