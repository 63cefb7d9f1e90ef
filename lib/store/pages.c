// SPDX-License-Identifier: Apache-2.0
/* Maps memory for slabs; huge pages halve the misses of address translation while bodies are copied. */
#include "pages.h"

#include <sys/mman.h>

_Atomic long mk__pages_countdown = -1;

static void *map_aligned(size_t bytes)
{
    size_t more = bytes + MK__PAGES_HUGE;
    char *map = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)map % MK__PAGES_HUGE;
    if (before)
        munmap(map, before);
    munmap(map + before + bytes, more - before - bytes);
    madvise(map + before, bytes, MADV_HUGEPAGE);
    return map + before;
}

void *mk__pages_map(size_t bytes)
{
    if (__builtin_expect(mk__pages_countdown >= 0, 0) && mk__pages_countdown-- == 0)
        return NULL;
    if (bytes >= MK__PAGES_HUGE)
        return map_aligned(bytes);
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

void mk__pages_unmap(void *p, size_t bytes)
{
    if (!p)
        return;
    mk__pages_unpoison(p, bytes);
    munmap(p, bytes);
}
