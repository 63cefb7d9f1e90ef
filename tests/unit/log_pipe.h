// SPDX-License-Identifier: Apache-2.0
/*
 * The error log in a pipe that does not block, for tests of what it says.
 */
#ifndef MK_UNIT_LOG_PIPE_H
#define MK_UNIT_LOG_PIPE_H

#include "testing.h"

#include <monkey/log.h>

#include <fcntl.h>
#include <unistd.h>

static int mk_test_log_ends[2];

static inline int mk_test_log_open(void **state)
{
    (void)state;
    assert_int_equal(pipe2(mk_test_log_ends, O_NONBLOCK | O_CLOEXEC), 0);
    mk_log_to(mk_test_log_ends[1], MK_LOG_INFO);
    return 0;
}

static inline int mk_test_log_close(void **state)
{
    (void)state;
    mk_log_to(-1, MK_LOG_INFO);
    close(mk_test_log_ends[0]);
    close(mk_test_log_ends[1]);
    return 0;
}

#endif
