// SPDX-License-Identifier: Apache-2.0
/* The server as a library, used as a program would use it: over <monkey/monkey.h> and real sockets alone. */
#include "folder.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/server.h"

static char root[512];

/* A port that was free a moment ago. */
static unsigned free_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    close(fd);
    return ntohs(addr.sin_port);
}

static int connect_to(unsigned port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons((uint16_t)port)};
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
        return fd;
    close(fd);
    return -1;
}

static void ask(int fd, const char *path, const char *line, const char *end)
{
    char text[4096];
    size_t len = 0;
    int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", path);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    for (ssize_t got; (got = recv(fd, text + len, sizeof(text) - len - 1, 0)) > 0;)
        len += (size_t)got;
    text[len] = '\0';
    assert_memory_equal(text, line, strlen(line));
    assert_true(len > strlen(end));
    assert_string_equal(text + len - strlen(end), end);
    close(fd);
}

struct text {
    char listen[64];
};

/* A server of `root` with two workers. */
static struct mk_server *make_server(unsigned port, struct text *t)
{
    struct mk_server *server = mk_server_new();
    assert_non_null(server);
    mk_server_one_shot(server, root);
    snprintf(t->listen, sizeof(t->listen), "127.0.0.1:%u", port);
    assert_int_equal(mk_server_set(server, "SERVER", "Listen", t->listen, "option --listen"), 0);
    assert_int_equal(mk_server_set(server, "SERVER", "Workers", "2", "option --workers"), 0);
    assert_int_equal(mk_server_set(server, "SERVER", "FastOpen", "0", "option"), 0);
    assert_int_equal(mk_server_load(server), 0);
    return server;
}

/* Plugins know that it is only checked. */
TEST(only_checked)
{
    struct mk_server *server = mk_server_new();
    assert_non_null(server);
    mk_server_one_shot(server, root);
    assert_int_equal(mk_server_set(server, "SERVER", "Workers", "3", "option"), 0);
    assert_int_equal(mk_server_set(server, "SERVER", "ShutdownTimeout", "7s", "option"), 0);
    assert_int_equal(mk_server_load(server), 0);
    assert_false(mk_generation_is_check(server->current));
    assert_int_equal(mk_generation_workers(server->current), 3);
    assert_int_equal(mk_generation_shutdown_timeout_ms(server->current), 7000);
    mk_server_check_only(server);
    assert_int_equal(mk_server_load(server), 0);
    assert_true(mk_generation_is_check(server->current));
    assert_int_equal(mk_server_start(server), -EINVAL);
    mk_server_free(server);
}

TEST(serves)
{
    struct text t;
    struct mk_server_info info;
    unsigned before = mk_test_descriptors(), port = free_port();
    struct mk_server *server = make_server(port, &t);
    mk_server_info(server, &info);
    assert_int_equal(info.workers, 2);
    assert_null(info.error_log);
    assert_null(info.pid_file);
    assert_int_equal(mk_server_check(server), 0);
    assert_int_equal(mk_server_start(server), 0);
    for (int i = 0; i < 20; i++)
        ask(connect_to(port), "/a.txt", "HTTP/1.1 200 OK\r\n", "\r\n\r\nhello");
    ask(connect_to(port), "/nowhere", "HTTP/1.1 404 Not Found\r\n", "There is nothing at this address.</p>\n");
    mk_server_stop(server);
    assert_int_equal(connect_to(port), -1);
    mk_server_stop(server); /* twice is once */
    mk_server_stop_now(server);
    assert_int_equal(mk_server_start(server), 0); /* and again */
    ask(connect_to(port), "/a.txt", "HTTP/1.1 200 OK\r\n", "\r\n\r\nhello");
    mk_server_stop(server);
    mk_server_free(server);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(two_servers)
{
    struct text t1, t2;
    unsigned port1 = free_port(), port2 = free_port();
    if (port1 == port2)
        skip();
    struct mk_server *one = make_server(port1, &t1), *two = make_server(port2, &t2);
    assert_int_equal(mk_server_start(one), 0);
    assert_int_equal(mk_server_start(two), 0);
    ask(connect_to(port1), "/a.txt", "HTTP/1.1 200 OK\r\n", "hello");
    ask(connect_to(port2), "/a.txt", "HTTP/1.1 200 OK\r\n", "hello");
    mk_server_stop(one);
    mk_server_free(one);
    ask(connect_to(port2), "/a.txt", "HTTP/1.1 200 OK\r\n", "hello");
    mk_server_stop(two);
    mk_server_free(two);
}

TEST(a_port_in_use)
{
    char text[4096];
    struct text t1, t2;
    struct mk_buf out;
    unsigned port = free_port();
    struct mk_server *one = make_server(port, &t1), *two = make_server(port, &t2);
    assert_int_equal(mk_server_start(one), 0);
    unsigned before = mk_test_descriptors();
    assert_int_equal(mk_server_start(two), -EADDRINUSE);
    assert_int_equal(mk_test_descriptors(), before);
    mk_server_stop(two);
    mk_buf_init_fixed(&out, text, sizeof(text) - 1);
    mk_server_problems(two, &out);
    assert_non_null(strstr(mk_buf_cstr(&out), "cannot listen on 127.0.0.1:"));
    mk_server_free(two);
    ask(connect_to(port), "/a.txt", "HTTP/1.1 200 OK\r\n", "hello");
    mk_server_stop(one);
    mk_server_free(one);
}

static void *stop_in_a_moment(void *ctx)
{
    usleep(20000);
    mk_server_stop_now(ctx);
    return NULL;
}

TEST(a_stop_is_hastened)
{
    struct text t;
    pthread_t thread;
    unsigned port = free_port();
    struct mk_server *server = make_server(port, &t);
    mk_server_set(server, "SERVER", "ShutdownTimeout", "10m", "option"); /* more than the test may take */
    assert_int_equal(mk_server_load(server), 0);
    assert_int_equal(mk_server_start(server), 0);
    int busy = connect_to(port);
    assert_int_equal(send(busy, "GET / HT", 8, MSG_NOSIGNAL), 8);
    ask(connect_to(port), "/a.txt", "HTTP/1.1 200 OK\r\n", "hello");
    assert_int_equal(pthread_create(&thread, NULL, stop_in_a_moment, server), 0);
    mk_server_stop(server);
    pthread_join(thread, NULL);
    mk_server_free(server);
    close(busy);
}

TEST(a_drain_has_its_time)
{
    struct text t;
    struct timespec began, ended;
    unsigned port = free_port();
    struct mk_server *server = make_server(port, &t);
    mk_server_set(server, "SERVER", "ShutdownTimeout", "50ms", "option");
    assert_int_equal(mk_server_load(server), 0);
    assert_int_equal(mk_server_start(server), 0);
    int busy = connect_to(port);
    assert_int_equal(send(busy, "GET / HT", 8, MSG_NOSIGNAL), 8);
    ask(connect_to(port), "/a.txt", "HTTP/1.1 200 OK\r\n", "hello");
    usleep(20000); /* the thread that has it must have accepted it */
    clock_gettime(CLOCK_MONOTONIC, &began);
    mk_server_stop(server);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    assert_in_range(ended.tv_sec - began.tv_sec, 0, 8); /* by default it is ten */
    mk_server_free(server);
    close(busy);
}

TEST(a_unix_socket)
{
    char listen_text[600];
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct mk_server *server = mk_server_new();
    snprintf(listen_text, sizeof(listen_text), "unix:%s", mk_test_path("s"));
    memcpy(addr.sun_path, listen_text + 5, strlen(listen_text + 5) + 1);
    mk_server_one_shot(server, root);
    mk_server_set(server, "SERVER", "Listen", listen_text, "option");
    mk_server_set(server, "SERVER", "Workers", "2", "option");
    assert_int_equal(mk_server_load(server), 0);
    assert_int_equal(mk_server_start(server), 0);
    for (int i = 0; i < 10; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
        ask(fd, "/a.txt", "HTTP/1.1 200 OK\r\n", "hello");
    }
    mk_server_stop(server);
    assert_int_equal(access(addr.sun_path, F_OK), -1);
    mk_server_free(server);
}

TEST(wrong_configurations)
{
    char text[4096];
    struct mk_buf out;
    struct mk_server *server = mk_server_new();
    mk_server_configure(server, "/nowhere");
    for (int i = 0; i < 2; i++) /* loading again starts over */
        assert_int_equal(mk_server_load(server), -EINVAL);
    mk_buf_init_fixed(&out, text, sizeof(text) - 1);
    mk_server_problems(server, &out);
    assert_non_null(strstr(mk_buf_cstr(&out), "/nowhere/monkey.conf"));
    mk_server_free(server);
    server = mk_server_new();
    for (int i = 0; i < 16; i++)
        assert_int_equal(mk_server_set(server, "SERVER", "Workers", "1", "x"), 0);
    assert_int_equal(mk_server_set(server, "SERVER", "Workers", "1", "x"), -ENOBUFS);
    mk_server_free(server);
    mk_server_free(NULL);
}

static int start_and_stop(void *ctx)
{
    const char *listen_text = ctx;
    struct mk_server *server = mk_server_new();
    if (!server)
        return -ENOMEM;
    mk_server_one_shot(server, root);
    mk_server_set(server, "SERVER", "Listen", listen_text, "option");
    mk_server_set(server, "SERVER", "Workers", "2", "option");
    int err = mk_server_load(server);
    if (err == 0)
        err = mk_server_start(server);
    mk_server_stop(server);
    mk_server_free(server);
    return err;
}

TEST(every_allocation_may_fail)
{
    unsigned before = mk_test_descriptors();
    assert_true(mk_test_failing_allocs(start_and_stop, (void *)(uintptr_t) "127.0.0.1:0") >= 10);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(about)
{
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    assert_int_equal(mk_reference(&out), 0);
    assert_non_null(strstr(mk_buf_cstr(&out), "DocumentRoot"));
    mk_buf_release(&out);
    struct text t;
    struct mk_server *server = make_server(2001, &t);
    mk_server_show(server, &out);
    assert_non_null(strstr(mk_buf_cstr(&out), "Listen"));
    assert_non_null(strstr(mk_buf_cstr(&out), "127.0.0.1:2001"));
    assert_non_null(strstr(mk_buf_cstr(&out), "DocumentRoot"));
    mk_server_free(server);
    mk_buf_release(&out);
    mk_build_info(&out);
    assert_non_null(strstr(mk_buf_cstr(&out), mk_version()));
    assert_non_null(strstr(mk_buf_cstr(&out), "liana"));
    mk_buf_release(&out);
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_write("a.txt", MK_STR("hello"));
    snprintf(root, sizeof(root), "%s", mk_test_folder);
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
