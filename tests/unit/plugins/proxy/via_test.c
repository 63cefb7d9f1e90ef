// SPDX-License-Identifier: Apache-2.0
/* Which values of Via are those of a loop. */
#include "testing.h"

#include <monkey/buf.h>

#include "plugins/proxy/via.h"

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
        {"", 20, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        MK_BUF_ON_STACK(via, 2048);
        for (unsigned n = 0; n < rows[i].n; n++)
            mk_buf_addf(&via, "%s%s", n ? ", " : "", rows[i].element);
        if (via.err || via_is_loop(mk_buf_str(&via)) != rows[i].is_loop)
            fail_msg("%s", rows[i].element);
    }
}

TEST_FILE()
