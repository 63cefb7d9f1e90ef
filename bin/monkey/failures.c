// SPDX-License-Identifier: Apache-2.0
/*
 * Counts and logs failed starts of the server (failures.h).
 */
#include "failures.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FAILURES_BEFORE_REFUSING = 3, CONNECTIONS_AT_ONCE = 256 };

static unsigned failures;
static struct output last_output;
static int last_status;

static void count_failure(void)
{
    failures++;
    if (failures == FAILURES_BEFORE_REFUSING)
        mk_log_error("supervisor: connections are closed until a server serves; SIGHUP starts one at once");
}

void failures_add_error(int err, int delay_ms)
{
    assert(err < 0);
    mk_log_error("supervisor: cannot start a server: %s; trying again in %d ms (failed starts: %u)", strerror(-err),
                 delay_ms, failures + 1);
    last_status = -1;
    count_failure();
}

void failures_add(const struct output *output, pid_t pid, int status, const char *what, int delay_ms)
{
    assert(pid > 0 && delay_ms > 0);
    bool same = failures > 0 && status == last_status && output_is_same(output, &last_output);
    last_status = status;
    last_output = *output;
    if (!same)
        output_log(output, MK_LOG_ERROR, pid);
    mk_log_error("supervisor: process %d %s; another one starts in %d ms (failed starts: %u%s)", pid, what, delay_ms,
                 failures + 1, same ? ", for the same reason" : "");
    count_failure();
}

void failures_clear(void)
{
    failures = 0;
}

bool failures_must_refuse(void)
{
    return failures >= FAILURES_BEFORE_REFUSING;
}

/* A previous server may have made the socket blocking or set SO_LINGER, so both are set again here. */
static void close_pending(int listener)
{
    int flags = fcntl(listener, F_GETFL);
    if (flags < 0 || (!(flags & O_NONBLOCK) && fcntl(listener, F_SETFL, flags | O_NONBLOCK) < 0))
        return;
    for (int i = 0; i < CONNECTIONS_AT_ONCE; i++) {
        const struct linger none = {0};
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
            return;
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
        close(fd);
    }
}

void failures_close_pending(const struct ipc_sockets *sockets)
{
    for (unsigned i = 0; i < sockets->n; i++)
        close_pending(sockets->items[i].fd);
}
