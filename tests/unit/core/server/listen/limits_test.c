// SPDX-License-Identifier: Apache-2.0
/* Counting connections, and what those see that are refused. */
#include "folder.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "server/listen/limits.h"
#include "server/listen/listeners.h"

static struct mk__limits limits;
static const struct mk_transport plain = {.name = "plain"};

static int open_it(struct mk_io *io, struct mk_worker *worker)
{
    (void)io, (void)worker;
    return 0;
}

static const struct mk_transport coded = {.name = "coded", .open = open_it};

static void set_plan(int plan, int64_t max)
{
    struct mk__settings settings = {.over_capacity = plan, .connections_max = max};
    mk__limits_set(&limits, &settings);
}

TEST(counts)
{
    set_plan(MK__OVER_CAPACITY_RESIST, 1);
    assert_true(mk__limits_evicts(&limits));
    assert_false(mk__limits_is_full(&limits));
    assert_true(mk__limits_add_conn(&limits));
    assert_true(mk__limits_is_full(&limits));
    set_plan(MK__OVER_CAPACITY_TOO_BUSY, 2);
    assert_false(mk__limits_is_full(&limits));
    assert_true(mk__limits_add_conn(&limits));
    assert_false(mk__limits_add_conn(&limits));
    assert_false(mk__limits_add_conn(&limits)); /* a refused connection is not counted */
    mk__limits_remove_conn(&limits);
    assert_true(mk__limits_add_conn(&limits));
    set_plan(MK__OVER_CAPACITY_DROP, 0); /* no limit; those that are there still count */
    assert_false(mk__limits_evicts(&limits));
    assert_true(mk__limits_add_conn(&limits));
    set_plan(MK__OVER_CAPACITY_DROP, 3);
    assert_false(mk__limits_add_conn(&limits));
    for (int i = 0; i < 3; i++)
        mk__limits_remove_conn(&limits);
    assert_int_equal(limits.open, 0);
    mk__limits_release(&limits);
}

/* A listener with one client that has sent its request already. */
static int listener, client;

static void connect_client(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    struct timeval patience = {.tv_sec = 5};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(send(client, "HEAD / HTTP/1.1\r\n\r\n", 19, 0), 19);
}

static void expect_end(const char *answer)
{
    char text[512];
    size_t len = 0;
    for (ssize_t n; (n = recv(client, text + len, sizeof(text) - 1 - len, 0)) > 0;)
        len += (size_t)n;
    text[len] = '\0';
    if (*answer)
        assert_int_equal(recv(client, text, 0, 0), 0); /* a FIN, not a reset */
    assert_memory_equal(text, answer, strlen(answer));
    assert_true(*answer || len == 0);
    close(client);
    close(listener);
}

static const struct {
    int plan;
    const struct mk_transport *transport;
    const char *answer;
} refusals[] = {
    {MK__OVER_CAPACITY_DROP, &plain, ""},
    {MK__OVER_CAPACITY_TOO_BUSY, &plain, "HTTP/1.1 503 Service Unavailable\r\nDate: "},
    {MK__OVER_CAPACITY_TOO_BUSY, &coded, ""}, /* the client could not read it */
};

TEST(refusals)
{
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct mk__settings settings = {.over_capacity = refusals[i].plan};
        struct mk__listener one = {.transport = refusals[i].transport};
        mk__limits_set(&limits, &settings);
        connect_client();
        unsigned refused = limits.refused;
        mk__limits_reject(&limits, &one, accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        assert_int_equal(limits.refused, refused + 1);
        expect_end(refusals[i].answer);
    }
    mk__limits_release(&limits);
    assert_int_equal(mk_test_descriptors(), before);
}

/* With no descriptor left at all, the spare one is given for each that is refused. */
TEST(refuses_without_descriptors)
{
    struct mk__listener one = {.transport = &plain};
    struct rlimit before, limit;
    unsigned descriptors = mk_test_descriptors();
    set_plan(MK__OVER_CAPACITY_TOO_BUSY, 0);
    connect_client();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){.rlim_cur = (rlim_t)client + 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fd, -1);
    assert_int_equal(mk__limits_reject_next(&limits, &one, listener, ENOMEM), ENOMEM); /* it would not help */
    assert_int_equal(mk__limits_reject_next(&limits, &one, listener, EMFILE), 0);
    assert_true(limits.reserve_fd > 0); /* and is there again */
    expect_end("HTTP/1.1 503 ");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    set_plan(MK__OVER_CAPACITY_RESIST, 0);
    assert_int_equal(limits.reserve_fd, 0);
    assert_int_equal(mk_test_descriptors(), descriptors);
}
