// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.h"

#include <monkey/base/str.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 512, FILE_NAME_BYTES = 64, GROUPS_BYTES = 2048 };

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

bool mk__cgroup_read(const char *dir, const char *file, char *to, size_t size)
{
    char path[PATH_BYTES + FILE_NAME_BYTES];
    int len = snprintf(path, sizeof(path), "%s/%s", dir, file);
    return len < (int)sizeof(path) && read_text(path, to, size);
}

/* Returns the least limit from this group up to the root of the hierarchy; 0: none. */
static uint64_t find_least_above(const struct mk__cgroup_limit *limit, const char *mount, char *group)
{
    uint64_t least = 0;
    char dir[PATH_BYTES];
    for (;;) {
        snprintf(dir, sizeof(dir), "%s%s", mount, group);
        uint64_t own = limit->read(dir);
        if (own && (!least || own < least))
            least = own;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* Returns whether the list has the controller: "cpu" is in "cpu,cpuacct", and not in "cpuset". */
static bool has_controller(const char *list, const char *controller)
{
    struct mk_str rest = mk_str_c(list), one;
    while (mk_str_next(&rest, &one))
        if (mk_str_eq(one, mk_str_c(controller)))
            return true;
    return false;
}

/* Lines are "0::/a/b" (version 2, mounted at the folder itself) or "4:cpu,cpuacct:/a/b" (version 1, one folder each).
 */
uint64_t mk__cgroup_find_limit_in(const struct mk__cgroup_limit *limit, char *groups, const char *mounts)
{
    char *save = NULL;
    uint64_t least = 0;
    for (char *line = strtok_r(groups, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char mount[PATH_BYTES];
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        bool is_v2 = controllers[1] == '\0';
        if (!is_v2 && !has_controller(controllers + 1, limit->controller))
            continue;
        snprintf(mount, sizeof(mount), "%s%s%s", mounts, is_v2 ? "" : "/", is_v2 ? "" : limit->controller);
        uint64_t own = find_least_above(limit, mount, group);
        if (own && (!least || own < least))
            least = own;
    }
    return least;
}

uint64_t mk__cgroup_find_limit(const struct mk__cgroup_limit *limit)
{
    char groups[GROUPS_BYTES];
    return read_text("/proc/self/cgroup", groups, sizeof(groups))
               ? mk__cgroup_find_limit_in(limit, groups, "/sys/fs/cgroup")
               : 0;
}
