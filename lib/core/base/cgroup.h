// SPDX-License-Identifier: Apache-2.0
/*
 * Limits of the control groups that this process is in, of both versions. Any thread; reads files of the kernel, which
 * do not wait for a disk.
 */
#ifndef MK_BASE_CGROUP_H
#define MK_BASE_CGROUP_H

#include <monkey/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a controller limits. `read` returns the limit that the folder of one group sets; 0: none. */
struct mk__cgroup_limit {
    const char *controller; /* of version 1, and the name of its mount: "cpu" */
    uint64_t (*read)(const char *dir);
};

/*
 * Returns the least limit of the groups of this process and of those above them, as far as they are mounted below
 * /sys/fs/cgroup; 0: none.
 */
MK_COLD uint64_t mk__cgroup_find_limit(const struct mk__cgroup_limit *limit);
/* The same for a text as in /proc/self/cgroup, which is changed, and another folder. */
MK_COLD uint64_t mk__cgroup_find_limit_in(const struct mk__cgroup_limit *limit, char *groups, const char *mounts);

/*
 * Reads a file of a group's folder into `to`, with a zero byte at its end. Returns false if it is missing, empty or
 * cannot be read.
 */
MK_COLD bool mk__cgroup_read(const char *dir, const char *file, char *to, size_t size);

#endif
