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

static bool must_fail(void)
{
    return MK_HAS_COUNTDOWN && __builtin_expect(mk__pages_countdown >= 0, 0) && mk__pages_countdown-- == 0;
}

static void *map_pages(size_t bytes, int flags)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *mk__pages_map(size_t bytes)
{
    if (must_fail())
        return NULL;
    return bytes >= MK__PAGES_HUGE ? map_aligned(bytes) : map_pages(bytes, 0);
}

void *mk__pages_reserve(size_t bytes)
{
    return must_fail() ? NULL : map_pages(bytes, MAP_NORESERVE);
}

void mk__pages_discard(void *p, size_t bytes)
{
    madvise(p, bytes, MADV_DONTNEED);
}

void mk__pages_unmap(void *p, size_t bytes)
{
    if (!p)
        return;
    mk__pages_unpoison(p, bytes);
    munmap(p, bytes);
}
