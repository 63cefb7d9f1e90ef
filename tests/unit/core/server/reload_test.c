// SPDX-License-Identifier: Apache-2.0
/* Reloads of a running server: with any amount of memory all stays as it was, or all is new. */
#include "folder.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "server/server.h"

static struct mk_server *server;

static uint16_t port_of(unsigned nth)
{
    struct mk_list *n = server->listeners.open.next;
    while (nth--)
        n = n->next;
    return mk__addr_port(&MK_CONTAINER_OF(n, struct mk__listener, node)->addr);
}

/* Does the server answer with this text at its first address? */
static bool answers(const char *text)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons(port_of(0))};
    struct timeval patience = {.tv_sec = 5};
    char answer[4096] = "";
    size_t len = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    static const char request[] = "GET /v HTTP/1.0\r\n\r\n";
    assert_int_equal(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL), sizeof(request) - 1);
    for (ssize_t n; (n = recv(fd, answer + len, sizeof(answer) - len - 1, 0)) > 0;)
        len += (size_t)n;
    close(fd);
    return strstr(answer, text) != NULL;
}

static void write_conf(const char *root, unsigned workers, bool more)
{
    char text[512];
    snprintf(text, sizeof(text), "[SERVER]\n    Listen 127.0.0.1:0\n    FastOpen 0\n    Workers %u\n%s", workers,
             more ? "    Listen 127.0.0.2:0\n    MaxHeadSize 60K\n    MaxHeaders 900\n" : "");
    mk_test_write("conf/monkey.conf", mk_str_c(text));
    snprintf(text, sizeof(text), "[HOST]\n    DocumentRoot ../../%s\n", root);
    mk_test_write("conf/sites/default", mk_str_c(text));
}

static void start(void)
{
    static char dir[512];
    snprintf(dir, sizeof(dir), "%s", mk_test_path("conf"));
    write_conf("a", 2, false);
    server = mk_server_new();
    mk_server_configure(server, dir);
    assert_int_equal(mk_server_load(server), 0);
    assert_int_equal(mk_server_start(server), 0);
    assert_true(answers("version a"));
}

static void finish(unsigned descriptors)
{
    mk_server_stop(server);
    mk_server_free(server);
    assert_int_equal(mk_test_descriptors(), descriptors);
}

static int reload(void *ctx)
{
    (void)ctx;
    int err = mk_server_reload(server);
    if (err < 0)
        assert_true(answers("version a"));
    return err;
}

/* More workers and listeners, larger buffers: every step of it may fail. */
TEST(every_allocation_may_fail)
{
    unsigned before = mk_test_descriptors();
    start();
    assert_int_equal(mk_server_reload(server), 0); /* the keeper is there from now on */
    unsigned running = mk_test_descriptors();
    write_conf("b", 4, true);
    assert_true(mk_test_failing_allocs(reload, NULL) > 20);
    assert_int_equal(server->n_workers, 4);
    assert_true(answers("version b"));
    assert_true(port_of(1) != 0);
    assert_true(mk_test_descriptors() > running);
    finish(before);
}

TEST(a_server_that_does_not_run)
{
    server = mk_server_new();
    assert_int_equal(mk_server_reload(server), -EINVAL);
    mk_server_free(server);
}

/* The problems are those of the failed one until the next reload; settings are those of the one in use. */
TEST(problems_and_settings)
{
    unsigned before = mk_test_descriptors();
    struct mk_server_info info;
    struct mk_buf out;
    char text[4096];
    start();
    write_conf("nowhere", 3, false);
    assert_int_equal(mk_server_reload(server), -EINVAL);
    mk_buf_init_fixed(&out, text, sizeof(text));
    mk_server_problems(server, &out);
    assert_non_null(strstr(mk_buf_cstr(&out), "cannot open the document root"));
    mk_server_info(server, &info);
    assert_int_equal(info.workers, 2);
    write_conf("b", 3, false);
    assert_int_equal(mk_server_reload(server), 0);
    mk_buf_init_fixed(&out, text, sizeof(text));
    mk_server_problems(server, &out);
    assert_string_equal(mk_buf_cstr(&out), "");
    mk_server_info(server, &info);
    assert_int_equal(info.workers, 3);
    assert_true(answers("version b"));
    finish(before);
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("a");
    mk_test_mkdir("b");
    mk_test_mkdir("conf");
    mk_test_mkdir("conf/sites");
    mk_test_write("a/v", MK_STR("version a"));
    mk_test_write("b/v", MK_STR("version b"));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
