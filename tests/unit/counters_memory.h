// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of counters, for cmocka's set-up and tear-down of a test.
 */
#ifndef MK_UNIT_COUNTERS_MEMORY_H
#define MK_UNIT_COUNTERS_MEMORY_H

#include "testing.h"

#include "base/counters.h"

static inline int mk_test_counters_open(void **state)
{
    (void)state;
    int err = mk__counters_memory_open();
    mk__counters_memory_serve();
    return err;
}

static inline int mk_test_counters_close(void **state)
{
    (void)state;
    mk__counters_memory_close();
    return 0;
}

#endif
