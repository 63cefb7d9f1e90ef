// SPDX-License-Identifier: Apache-2.0
/* Which values of Via are those of a loop. */
#include "testing.h"

#include <monkey/kit/via.h>

#define MARK UINT64_C(0x0123456789abcdef)

TEST(loops)
{
    static const struct {
        const char *element;
        unsigned n;
        bool is_loop;
    } rows[] = {
        {"1.1 monkey", 9, false},
        {"1.1 monkey", 10, true},
        {"2.0 MONKEY (a, comment)", 10, true},
        {"HTTP/1.1  monkey", 10, true},
        {"1.1 other, 1.1 monkey", 10, true},
        {"1.1 monkeys, 1.1 a-monkey, monkey, 1.1 other (monkey)", 20, false},
        {"1.1 monkey-0123456789abcdef", 1, true},
        {"1.0 other, 2.0 Monkey-0123456789ABCDEF (a comment)", 1, true},
        {"1.1 monkey-0123456789abcdee", 9, false},
        {"1.1 monkey-0123456789abcdee", 10, true},
        {"1.1 monkey-0123456789abcde, 1.1 monkey-0123456789abcdef0", 10, false},
        {"1.1 other (monkey-0123456789abcdef), monkey-0123456789abcdef", 1, false},
        {"", 20, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        MK_BUF_ON_STACK(via, 2048);
        for (unsigned n = 0; n < rows[i].n; n++)
            mk_buf_addf(&via, "%s%s", n ? ", " : "", rows[i].element);
        if (via.err || mk_via_is_loop(mk_buf_str(&via), MARK) != rows[i].is_loop)
            fail_msg("%s", rows[i].element);
    }
}

TEST(seeds_differ)
{
    int a = 0, b = 0;
    assert_true(mk_via_seed(&a) != mk_via_seed(&b));
}

TEST_FILE()
