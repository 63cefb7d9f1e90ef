// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include "base/cgroup.h"

#include <monkey/base/str.h>

#include <string.h>
#include <unistd.h>

uint64_t mk__memory_from_limit(const char *text)
{
    uint64_t bytes = 0;
    return mk_str_u64(mk_str(text, strcspn(text, "\n")), UINT64_MAX, &bytes) ? bytes : 0;
}

/* Version 2 slows processes down above memory.high, and ends them above memory.max. */
static uint64_t read_limit(const char *dir)
{
    static const char *const files[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
    uint64_t least = 0;
    char text[64];
    for (unsigned i = 0; i < MK_COUNT_OF(files); i++) {
        uint64_t bytes = mk__cgroup_read(dir, files[i], text, sizeof(text)) ? mk__memory_from_limit(text) : 0;
        if (bytes && (!least || bytes < least))
            least = bytes;
    }
    return least;
}

uint64_t mk_memory_bytes(void)
{
    static const struct mk__cgroup_limit limit = {"memory", read_limit};
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t machine = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
    uint64_t group = mk__cgroup_find_limit(&limit);
    return group && group < machine ? group : machine;
}
