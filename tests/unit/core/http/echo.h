// SPDX-License-Identifier: Apache-2.0
/*
 * A handler that takes exchanges over and sends back what it reads, for tests of any protocol. Include it after the
 * fixture of the protocol and a definition of ECHO_BYTES, the size of its buffer.
 */
#ifndef MK_UNIT_HTTP_ECHO_H
#define MK_UNIT_HTTP_ECHO_H

#include <errno.h>
#include <monkey/tunnel.h>

static struct {
    int result;             /* of taking it over */
    unsigned calls, events; /* of ready(), all together */
    size_t most;            /* that one read asks for */
    bool deaf, shuts, late; /* it reads nothing; answers the end with its own; takes over later */
    char kept[ECHO_BYTES];  /* what could not be written yet */
    size_t kept_len;
    unsigned ended; /* the client's end was seen */
    size_t read;    /* bytes in all */
} echo;

static void write_kept(struct mk_request *req)
{
    ssize_t n = echo.kept_len ? mk_tunnel_write(req, echo.kept, echo.kept_len) : 0;
    if (n <= 0)
        return;
    memmove(echo.kept, echo.kept + n, echo.kept_len - (size_t)n);
    echo.kept_len -= (size_t)n;
}

static void see_the_end(struct mk_request *req)
{
    echo.ended++;
    if (echo.shuts)
        assert_int_equal(mk_tunnel_shutdown(req), 0);
    mk_tunnel_end(req);
}

static void ready(struct mk_request *req, unsigned events, void *ctx)
{
    assert_ptr_equal(ctx, &echo);
    echo.calls++;
    echo.events |= events;
    write_kept(req);
    while (!echo.deaf && !echo.kept_len) {
        ssize_t n = mk_tunnel_read(req, echo.kept, echo.most);
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            see_the_end(req);
            return;
        }
        if (echo.kept[0] == '!') {
            mk_response_abort(req);
            return;
        }
        echo.read += (size_t)n;
        echo.kept_len = (size_t)n;
        write_kept(req);
    }
}

static void take(struct mk_request *req)
{
    mk_response_header(req, MK_STR("Upgrade"), MK_STR("echo"));
    echo.result = mk_request_take_over(req, ready, &echo);
    if (echo.result < 0)
        mk_response_error(req, 400);
}

static void answer(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    if (!echo.late)
        take(req);
}

/* As at the beginning of each test. */
static void reset_echo(void)
{
    memset(&echo, 0, sizeof(echo));
    echo.most = sizeof(echo.kept);
}

#endif
