// SPDX-License-Identifier: Apache-2.0
/* A fixture with HTTP and one disk thread, which reads what is not in the page cache (mk_test_make_cold()). */
#ifndef MK_TEST_DISK_FIXTURE_H
#define MK_TEST_DISK_FIXTURE_H

#include "harness.h"
#include "loop/job.h"

/* Opens a fixture, and the pool of the thread, which the caller closes. */
static inline void open_disk_fixture(struct mk_test_fixture *fixture, struct mk_thread_pool *jobs,
                                     void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture))
{
    mk__job_open_pool(jobs, 1);
    assert_int_equal(mk_test_fixture_open(fixture, jobs), 0);
    fixture->handler = handler;
    assert_int_equal(mk_test_http_open(fixture), 0);
}

/* Runs turns until the connection has a response to send; the disk thread may have to read first. */
static inline void settle_with_disk(struct mk_test_client *c)
{
    mk_test_settle(c->fixture);
    for (int i = 0; i < 1000 && strcmp(mk_test_state(c), "disk") == 0; i++)
        assert_true(mk_test_wait_wakeup(c->fixture));
}

#endif
