// SPDX-License-Identifier: Apache-2.0
/* A page of random bytes (base/random_pool.h), which are given out from its end to its beginning. */
#include "base/random_pool.h"

#include <monkey/base/random.h>

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096 };

struct mk__random_page {
    uint64_t left; /* 0 in a child of fork(2) */
    unsigned char bytes[PAGE_BYTES - sizeof(uint64_t)];
};

static_assert(sizeof(struct mk__random_page) == PAGE_BYTES, "the kernel wipes whole pages");

/* Returns an empty page, or NULL: the kernel has no memory, or does not wipe pages (before Linux 4.14). */
static struct mk__random_page *make_page(void)
{
    void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, PAGE_BYTES, MADV_WIPEONFORK) == 0)
        return page;
    munmap(page, PAGE_BYTES);
    return NULL;
}

static int fill_page(struct mk__random_page *page)
{
    int err = mk_random(page->bytes, sizeof(page->bytes));
    page->left = err < 0 ? 0 : sizeof(page->bytes);
    return err;
}

int mk__random_pool_take(struct mk__random_pool *pool, void *to, size_t bytes)
{
    assert(bytes <= MK__RANDOM_TAKE_MAX);
    if (!pool->page)
        pool->page = make_page();
    struct mk__random_page *page = pool->page;
    if (!page)
        return mk_random(to, bytes);
    int err = page->left < bytes ? fill_page(page) : 0;
    if (err < 0)
        return err;
    page->left -= bytes;
    memcpy(to, page->bytes + page->left, bytes);
    return 0;
}

void mk__random_pool_release(struct mk__random_pool *pool)
{
    if (pool->page)
        munmap(pool->page, PAGE_BYTES);
    pool->page = NULL;
}
