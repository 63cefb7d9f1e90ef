// SPDX-License-Identifier: Apache-2.0
/* Waiting for descriptors, also if poll(2) is refused. */
#include "testing.h"

#include <monkey/base/poll.h>
#include <monkey/log.h>

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int refusal; /* the errno of each call; 0: none */
static unsigned pauses, lines;
static long paused_ms; /* by the last pause */

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct timespec time = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    if (!refusal)
        return (int)syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &time, NULL, 0);
    for (nfds_t i = 0; i < n; i++)
        fds[i].revents = 0x55;
    errno = refusal;
    return -1;
}

int nanosleep(const struct timespec *time, struct timespec *rest)
{
    (void)rest;
    pauses++;
    paused_ms = time->tv_sec * 1000 + time->tv_nsec / 1000000;
    return 0;
}

static void count_line(enum mk_log_level level, const char *message, void *ctx)
{
    (void)ctx;
    assert_int_equal(level, MK_LOG_ERROR);
    assert_non_null(strstr(message, "poll: Operation not permitted"));
    lines++;
}

static int pair[2];

static int open_pair(void **state)
{
    (void)state;
    refusal = 0;
    pauses = lines = 0;
    paused_ms = -1;
    return pipe(pair);
}

static int close_pair(void **state)
{
    (void)state;
    refusal = 0;
    close(pair[0]);
    close(pair[1]);
    return 0;
}

TEST(as_the_call, open_pair, close_pair)
{
    struct pollfd fds[] = {{.fd = pair[0], .events = POLLIN}, {.fd = pair[1], .events = POLLOUT}};
    assert_int_equal(mk_poll(fds, 1, 0), 0);
    assert_int_equal(mk_poll(fds, 2, -1), 1);
    assert_int_equal(fds[0].revents, 0);
    assert_int_equal(fds[1].revents, POLLOUT);
    assert_int_equal(write(pair[1], "x", 1), 1);
    assert_int_equal(mk_poll_unlogged(fds, 2, -1), 2);
    assert_int_equal(fds[0].revents, POLLIN);
    assert_int_equal(pauses, 0);
}

TEST(a_signal_comes, open_pair, close_pair)
{
    struct pollfd fds[] = {{.fd = pair[0], .events = POLLIN}};
    refusal = EINTR;
    assert_int_equal(mk_poll(fds, 1, -1), 0);
    assert_int_equal(fds[0].revents, 0);
    assert_int_equal(pauses, 0);
}

/* All that may be ready is reported, after a pause. */
TEST(refused, open_pair, close_pair)
{
    static const struct {
        int timeout_ms;
        long paused_ms;
    } rows[] = {{-1, MK_POLL_PAUSE_MS}, {60000, MK_POLL_PAUSE_MS}, {7, 7}, {0, 0}};
    static const int errors[] = {EPERM, ENOSYS, ENOMEM};
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        struct pollfd fds[] = {{.fd = pair[0], .events = POLLIN},
                               {.fd = -1, .events = POLLIN},
                               {.fd = pair[1], .events = POLLIN | POLLOUT}};
        refusal = errors[i % MK_COUNT_OF(errors)];
        assert_int_equal(mk_poll_unlogged(fds, 3, rows[i].timeout_ms), 3);
        assert_int_equal(fds[0].revents, POLLIN);
        assert_int_equal(fds[1].revents, 0);
        assert_int_equal(fds[2].revents, POLLIN | POLLOUT);
        assert_int_equal(pauses, i + 1);
        assert_int_equal(paused_ms, rows[i].paused_ms);
    }
}

TEST(the_first_refusal_is_logged, open_pair, close_pair)
{
    struct pollfd fds[] = {{.fd = pair[0], .events = POLLIN}};
    refusal = EPERM;
    mk_log_to_function(count_line, NULL, MK_LOG_INFO);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mk_poll(fds, 1, 0), 1);
    mk_log_to(-1, MK_LOG_INFO);
    assert_int_equal(lines, 1);
}
