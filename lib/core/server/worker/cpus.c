// SPDX-License-Identifier: Apache-2.0
/*
 * Counts usable processors (server/worker/cpus.h): a container with half a processor should not get 64 workers.
 */
#include "server/worker/cpus.h"

#include "base/cgroup.h"

#include <stdio.h>
#include <string.h>

unsigned mk__cpus_from_quota(const char *text)
{
    long quota = 0, period = 0;
    if (sscanf(text, "%ld %ld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return 0;
    return (unsigned)((quota + period - 1) / period);
}

/* Version 2 has one file for both numbers, version 1 two. */
static uint64_t read_group_limit(const char *dir)
{
    char text[64], period[32];
    if (mk__cgroup_read(dir, "cpu.max", text, sizeof(text)))
        return mk__cpus_from_quota(text);
    if (!mk__cgroup_read(dir, "cpu.cfs_quota_us", text, 32) ||
        !mk__cgroup_read(dir, "cpu.cfs_period_us", period, sizeof(period)))
        return 0;
    text[strcspn(text, "\n")] = ' ';
    strncat(text, period, sizeof(text) - strlen(text) - 1);
    return mk__cpus_from_quota(text);
}

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
    static const struct mk__cgroup_limit groups = {"cpu", read_group_limit};
    uint64_t limit = mk__cgroup_find_limit(&groups);
    unsigned cpus = 1;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cpus = (unsigned)CPU_COUNT(&set);
    if (limit && limit < cpus)
        cpus = (unsigned)limit;
    return cpus ? cpus : 1;
}
