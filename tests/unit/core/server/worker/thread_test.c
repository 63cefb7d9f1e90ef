// SPDX-License-Identifier: Apache-2.0
/* The life of a worker: opened with any amount of memory, started, drained, stopped, in any order. */
#include "folder.h"

#include <errno.h>
#include <sys/socket.h>

#include "loop/job.h"
#include "server/generation/generation_load.h"
#include "server/server.h"

#include <monkey/hooks.h>

static struct mk_generation generation;
static struct mk_thread_pool jobs;
static struct mk__limits limits;
static struct mk__thread thread = {.limits = &limits};
extern const struct mk_plugin mk_plugin_liana;
static struct mk__listeners listeners;
static struct mk__addr addr;

static void open_listener(void)
{
    struct mk__settings settings = {.backlog = 16};
    struct mk__listen_conf directive = {.text = MK_STR("127.0.0.1:0"),
                                        .mode.transport = mk_plugin_liana.interfaces->transport};
    const char *error;
    unsigned nth;
    assert_int_equal(mk__addr_parse(directive.text, &directive.addr, &error), 0);
    settings.listen = (struct mk__listen_confs){&directive, 1};
    mk__listeners_init(&listeners);
    assert_int_equal(mk__listeners_prepare(&listeners, &settings, 1, &nth), 0);
    addr = MK_LIST_FIRST(&listeners.open, struct mk__listener, node)->addr;
}

static int open_worker(void)
{
    return mk__thread_open(&thread, &generation, 0, 1, &jobs, &listeners);
}

static void start(void)
{
    open_listener();
    mk__job_open_pool(&jobs, 1);
    assert_int_equal(open_worker(), 0);
    assert_int_equal(mk__thread_start(&thread), 0);
    mk__thread_start_serving(&thread);
}

static void finish(void)
{
    mk__thread_join(&thread);
    mk_thread_pool_close(&jobs);
    mk__thread_close(&thread);
    assert_int_equal(thread.account.bytes, 0);
    mk__listeners_release(&listeners);
}

static int connect_one(void)
{
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, &addr.sa, addr.len), 0);
    return fd;
}

/* Sends a request and reads until the answer is there. */
static void ask(int fd, const char *request, const char *line)
{
    char answer[4096] = "";
    size_t len = 0;
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    while (!strstr(answer, "\r\n\r\n")) {
        ssize_t n = recv(fd, answer + len, sizeof(answer) - len - 1, 0);
        assert_true(n > 0);
        len += (size_t)n;
        answer[len] = '\0';
    }
    assert_memory_equal(answer, line, strlen(line));
}

#define GET "GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n"

TEST(serves_and_drains)
{
    char byte;
    unsigned before = mk_test_descriptors();
    start();
    int idle = connect_one(), fresh = connect_one();
    ask(idle, GET, "HTTP/1.1 200 OK\r\n");
    ask(idle, GET, "HTTP/1.1 200 OK\r\n");
    mk__thread_drain(&thread);
    mk__thread_drain(&thread); /* twice is once */
    finish();                  /* no connection is busy: at once */
    while (recv(idle, &byte, 1, 0) > 0)
        ;
    assert_int_equal(recv(idle, &byte, 1, 0), 0);
    assert_true(recv(fresh, &byte, 1, 0) <= 0);
    close(idle);
    close(fresh);
    assert_int_equal(mk_test_descriptors(), before);
}

/* The settings are the generation's, which only this thread reads in these tests. */
static void set_delay(uint32_t ms)
{
    ((struct mk__settings *)(uintptr_t)generation.settings)->shutdown_delay_ms = ms;
}

TEST(a_drain_is_delayed)
{
    set_delay(20);
    start();
    int idle = connect_one();
    ask(idle, GET, "HTTP/1.1 200 OK\r\n");
    mk__thread_drain(&thread);
    finish(); /* by itself */
    close(idle);
    set_delay(0);
}

TEST(continues_during_a_delay)
{
    set_delay(3600000);
    start();
    int idle = connect_one();
    ask(idle, GET, "HTTP/1.1 200 OK\r\n");
    mk__thread_drain(&thread);
    ask(idle, GET, "HTTP/1.1 200 OK\r\n");
    int late = connect_one();
    ask(late, GET, "HTTP/1.1 200 OK\r\n");
    ask(idle, GET, "HTTP/1.1 200 OK\r\n");
    mk__thread_stop(&thread);
    finish();
    close(idle);
    close(late);
    set_delay(0);
}

TEST(a_stop_ends_a_drain)
{
    start();
    int busy = connect_one(), idle = connect_one();
    assert_int_equal(send(busy, "GET / HT", 8, MSG_NOSIGNAL), 8); /* it has all of ShutdownTimeout to continue */
    ask(idle, GET, "HTTP/1.1 200 OK\r\n");
    mk__thread_drain(&thread);
    mk__thread_stop(&thread);
    mk__thread_stop(&thread);
    finish();
    close(busy);
    close(idle);
}

TEST(a_drain_after_the_end)
{
    start();
    mk__thread_stop(&thread);
    mk__thread_join(&thread);
    mk__thread_drain(&thread); /* it is not read; closing must handle that */
    finish();
}

TEST(unstarted)
{
    open_listener();
    mk__job_open_pool(&jobs, 1);
    assert_int_equal(open_worker(), 0);
    mk__thread_drain(&thread);
    mk__thread_stop(&thread);
    finish();
}

/* ── a worker that is fed ── */

/* As the control thread would: a connection of the listener is handed off to the worker. */
static void feed(const struct mk__listener *listening, int listener_fd)
{
    struct mk__accepted accepted = {.fd = accept4(listener_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    assert_true(accepted.fd >= 0);
    limits.open++;
    assert_int_equal(mk__receiver_send(&thread.receiver, listening, &accepted), 0);
}

static void open_fed(void)
{
    open_listener();
    mk__job_open_pool(&jobs, 1);
    limits.open = 0;
    assert_int_equal(mk__thread_open(&thread, &generation, 0, 0, &jobs, &listeners), 0);
    assert_int_equal(thread.acceptors.n, 0);
}

TEST(serves_what_it_is_given)
{
    open_fed();
    const struct mk__listener *one = MK_LIST_FIRST(&listeners.open, struct mk__listener, node);
    fcntl(one->fds[0], F_SETFL, 0); /* accept waits */
    assert_int_equal(mk__thread_start(&thread), 0);
    mk__thread_start_serving(&thread);
    int idle = connect_one(), silent = connect_one();
    for (uint32_t i = 0; i < 10; i++) { /* the same number again and again */
        int fd = connect_one();
        if (i == 0)
            feed(one, one->fds[0]), feed(one, one->fds[0]);
        assert_int_equal(send(fd, GET, strlen(GET), MSG_NOSIGNAL), strlen(GET));
        shutdown(fd, SHUT_WR);
        feed(one, one->fds[0]);
        char answer[1024];
        size_t len = 0;
        for (ssize_t n; (n = recv(fd, answer + len, sizeof(answer) - len, 0)) > 0;)
            len += (size_t)n;
        assert_memory_equal(answer, "HTTP/1.1 200 OK\r\n", 17);
        assert_memory_equal(answer + len - 5, "hello", 5); /* its FIN was seen, too: the end came at once */
        close(fd);
    }
    ask(idle, GET, "HTTP/1.1 200 OK\r\n");
    ask(idle, GET, "HTTP/1.1 200 OK\r\n");
    while (mk__receiver_load(&thread.receiver) != 2)
        ; /* the last one is being closed */
    mk__thread_drain(&thread);
    ask(idle, GET, "HTTP/1.1 200 OK\r\n"); /* it continues until it gets no more */
    mk_post(&thread.loop, &thread.receiver.end_message);
    finish();
    assert_int_equal(limits.open, 0);
    assert_int_equal(mk__receiver_load(&thread.receiver), 0);
    close(idle);
    close(silent);
}

/* A connection that was given to a worker which ended before it took it is closed. */
TEST(an_end_before_the_first_look)
{
    char byte;
    unsigned before = mk_test_descriptors();
    open_fed();
    const struct mk__listener *one = MK_LIST_FIRST(&listeners.open, struct mk__listener, node);
    fcntl(one->fds[0], F_SETFL, 0);
    int clients[3];
    for (uint32_t i = 0; i < 3; i++) {
        clients[i] = connect_one();
        feed(one, one->fds[0]);
    }
    finish();
    assert_int_equal(limits.open, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(recv(clients[i], &byte, 1, 0) <= 0);
        close(clients[i]);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

static int open_and_close(void *ctx)
{
    (void)ctx;
    int err = open_worker();
    if (err == 0)
        mk__thread_close(&thread);
    assert_int_equal(thread.account.bytes, 0);
    return err;
}

TEST(every_allocation_may_fail)
{
    open_listener();
    mk__job_open_pool(&jobs, 1);
    unsigned before = mk_test_descriptors();
    assert_true(mk_test_failing_allocs(open_and_close, NULL) >= 4);
    assert_int_equal(mk_test_descriptors(), before);
    mk_thread_pool_close(&jobs);
    mk__listeners_release(&listeners);
}

static int set_up(void **state)
{
    static char root[512];
    struct mk__generation_source source = {.root = root, .root_origin = "option --one-shot"};
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_write("a.txt", MK_STR("hello"));
    snprintf(root, sizeof(root), "%s", mk_test_folder);
    return mk__generation_load(&generation, &source);
}

static int tear_down(void **state)
{
    mk__generation_release(&generation);
    return mk_test_folder_remove(state);
}

TEST_FILE(set_up, tear_down)
