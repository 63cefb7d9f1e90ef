// SPDX-License-Identifier: Apache-2.0
/* A response with a file that a cache owns, and knows to be in memory for this turn of the loop. */
#ifndef MK_TEST_RESIDENT_FILE_H
#define MK_TEST_RESIDENT_FILE_H

#include "folder.h"
#include "harness.h"

#include <fcntl.h>
#include <unistd.h>

static void keep_nothing(void *owned)
{
    (void)owned;
}

static void close_resident(void *ctx)
{
    close(*(int *)ctx);
}

/* Sends a file of the test's folder; one exchange at a time. */
static void send_resident_file(struct mk_request *req, const char *name, uint64_t bytes)
{
    static const struct mk_owner owner = {keep_nothing, keep_nothing};
    static int fd;
    fd = open(mk_test_path(name), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(mk_arena_defer(mk_request_arena(req), close_resident, &fd), 0);
    mk_response_file(req, &(struct mk_file){.fd = fd,
                                            .bytes = bytes,
                                            .type = MK_STR("text/x"),
                                            .in_memory = true,
                                            .owner = &owner,
                                            .owned = &fd});
}

#endif
