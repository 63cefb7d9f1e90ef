// SPDX-License-Identifier: Apache-2.0
/* A pool of random bytes gives none out twice: not when it is filled again, and not in a child of fork(2). */
#include "testing.h"

#include "base/random_pool.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ID_BYTES = 16, IDS = 1000 }; /* several pages */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, ID_BYTES);
}

TEST(never_repeats)
{
    static unsigned char ids[IDS][ID_BYTES];
    struct mk__random_pool pool = {0};
    for (int i = 0; i < IDS; i++)
        assert_int_equal(mk__random_pool_take(&pool, ids[i], ID_BYTES), 0);
    mk__random_pool_release(&pool);
    qsort(ids, IDS, ID_BYTES, compare_ids);
    for (int i = 1; i < IDS; i++)
        assert_memory_not_equal(ids[i - 1], ids[i], ID_BYTES);
}

TEST(takes_what_was_asked_for)
{
    struct mk__random_pool pool = {0};
    unsigned char seen[MK__RANDOM_TAKE_MAX + 1] = {0};
    for (size_t len = 0; len <= MK__RANDOM_TAKE_MAX; len++) {
        static const char zero[MK__RANDOM_TAKE_MAX];
        unsigned char *p = (unsigned char *)mk_test_guarded(zero, len);
        for (int i = 0; i < 16; i++) { /* a byte is 0 in all rounds once in 2^128 */
            assert_int_equal(mk__random_pool_take(&pool, p, len), 0);
            seen[len] |= len ? p[len - 1] : 1;
        }
        mk_test_unguard((char *)p, len);
        assert_true(seen[len]);
    }
    mk__random_pool_release(&pool);
}

TEST(differs_in_a_child)
{
    unsigned char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned char own[ID_BYTES];
    struct mk__random_pool pool = {0};
    assert_ptr_not_equal(shared, MAP_FAILED);
    assert_int_equal(mk__random_pool_take(&pool, own, ID_BYTES), 0); /* bytes wait now */
    pid_t child = fork();
    if (child == 0)
        _exit(mk__random_pool_take(&pool, shared, ID_BYTES) < 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(mk__random_pool_take(&pool, own, ID_BYTES), 0);
    assert_memory_not_equal(own, shared, ID_BYTES);
    mk__random_pool_release(&pool);
    munmap(shared, 4096);
}
