// SPDX-License-Identifier: Apache-2.0
/* Limits of memory as control groups write them, and this machine. */
#include "testing.h"

#include <unistd.h>

#include "base/memory.h"

TEST(limits)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"max\n", 0},
        {"536870912\n", 536870912},
        {"536870912", 536870912},
        {"9223372036854771712\n", 9223372036854771712u}, /* version 1 without a limit */
        {"", 0},
        {"\n", 0},
        {"-1\n", 0},
        {"12 34\n", 0},
        {"99999999999999999999\n", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(mk__memory_from_limit(cases[i].text), cases[i].bytes);
}

TEST(this_machine)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_in_range(mk_memory_bytes(), 1024 * 1024, machine);
}

TEST_FILE(NULL, NULL)
