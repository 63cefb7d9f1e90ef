// SPDX-License-Identifier: Apache-2.0
/*
 * Counts usable processors (server/worker/cpus.h): a container with half a processor should not get 64 workers.
 */
#include "server/worker/cpus.h"

#include <monkey/base/str.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

/* ── limits of control groups ── */

static bool read_text(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, to, size - 1);
    close(fd);
    if (n <= 0)
        return false;
    to[n] = '\0';
    return true;
}

unsigned mk__cpus_from_quota(const char *text)
{
    long quota = 0, period = 0;
    if (sscanf(text, "%ld %ld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return 0;
    return (unsigned)((quota + period - 1) / period);
}

/* Returns the limit of one control group's directory: v2 has one file, v1 two. 0: none. */
static unsigned read_group_limit(const char *dir)
{
    char path[PATH_BYTES + 32], text[64], period[32];
    snprintf(path, sizeof(path), "%s/cpu.max", dir);
    if (read_text(path, text, sizeof(text)))
        return mk__cpus_from_quota(text);
    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
    if (!read_text(path, text, 32))
        return 0;
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    if (!read_text(path, period, sizeof(period)))
        return 0;
    text[strcspn(text, "\n")] = ' ';
    strncat(text, period, sizeof(text) - strlen(text) - 1);
    return mk__cpus_from_quota(text);
}

/* Returns the smallest limit from this group up to the root of the hierarchy; 0: none. */
static unsigned find_least_limit(const char *mount, char *group)
{
    unsigned least = 0;
    char dir[PATH_BYTES];
    for (;;) {
        snprintf(dir, sizeof(dir), "%s%s", mount, group);
        unsigned limit = read_group_limit(dir);
        if (limit && (!least || limit < least))
            least = limit;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* Returns whether the list has "cpu", as "cpu,cpuacct" does; "cpuset" does not count. */
static bool has_cpu(const char *controllers)
{
    struct mk_str rest = mk_str_c(controllers), one;
    while (mk_str_next(&rest, &one))
        if (mk_str_eq(one, MK_STR("cpu")))
            return true;
    return false;
}

/*
 * Returns how many processors the control groups of the process allow, rounded up; 0: no limit. Lines of
 * /proc/self/cgroup: "0::/a/b" (v2) or "4:cpu,cpuacct:/a/b" (v1).
 */
static unsigned find_cgroup_limit(void)
{
    char text[4096], *save = NULL;
    unsigned least = 0;
    if (!read_text("/proc/self/cgroup", text, sizeof(text)))
        return 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        const char *mount = controllers[1] == '\0' ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
        if (controllers[1] != '\0' && !has_cpu(controllers + 1))
            continue;
        unsigned limit = find_least_limit(mount, group);
        if (limit && (!least || limit < least))
            least = limit;
    }
    return least;
}

/* ── the processors of this process ── */

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
    unsigned cpus = 1, limit = find_cgroup_limit();
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cpus = (unsigned)CPU_COUNT(&set);
    if (limit && limit < cpus)
        cpus = limit;
    return cpus ? cpus : 1;
}
