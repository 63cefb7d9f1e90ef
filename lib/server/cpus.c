// SPDX-License-Identifier: Apache-2.0
/*
 * Counts usable processors (server/cpus.h): a container with half a processor should not get 64 workers.
 */
#include "server/cpus.h"

#include "server/cgroup.h"

void mk__cpus_pick(cpu_set_t *set, unsigned n)
{
    int all = CPU_COUNT(set);
    for (int cpu = 0, left = all ? (int)(n % (unsigned)all) : 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, set) || left-- == 0)
            continue;
        CPU_CLR(cpu, set);
    }
}

unsigned mk__cpus_count(void)
{
    cpu_set_t set;
    unsigned cpus = 1, limit = MK_SMALL ? 0 : mk__cgroup_count_cpus();
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cpus = (unsigned)CPU_COUNT(&set);
    if (limit && limit < cpus)
        cpus = limit;
    return cpus ? cpus : 1;
}
