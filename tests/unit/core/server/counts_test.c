// SPDX-License-Identifier: Apache-2.0
/* What a running server counts: requests, refusals, connections and reloads, over reloads and other numbers of workers.
 */
#include "folder.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <monkey/counters.h>
#include <monkey/log.h>

#include "server/server.h"

static struct mk_server *server;

static void write_conf(unsigned workers)
{
    char text[256];
    snprintf(text, sizeof(text), "[SERVER]\n    Listen 127.0.0.1:0\n    FastOpen 0\n    Workers %u\n", workers);
    mk_test_write("conf/monkey.conf", mk_str_c(text));
    mk_test_write("conf/sites/default", MK_STR("[HOST]\n    ServerName example.org\n    DocumentRoot ../../root\n"));
}

static void start(void)
{
    static char dir[512];
    snprintf(dir, sizeof(dir), "%s", mk_test_path("conf"));
    write_conf(2);
    server = mk_server_new();
    mk_server_configure(server, dir);
    assert_int_equal(mk_server_load(server), 0);
    assert_int_equal(mk_server_start(server), 0);
}

static int open_client(void)
{
    uint16_t port = mk__addr_port(&MK_CONTAINER_OF(server->listeners.open.next, struct mk__listener, node)->addr);
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons(port)};
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

/* Sends bytes, and waits until the server has closed the connection. */
static void ask(const char *request)
{
    char answer[8192];
    int fd = open_client();
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    while (recv(fd, answer, sizeof(answer), 0) > 0)
        ;
    close(fd);
}

struct wanted {
    const char *name, *labels;
    int64_t value;
    bool found;
};

static int compare(const struct mk_counter_value *v, void *ctx)
{
    struct wanted *w = ctx;
    if (!mk_str_eq(v->name, mk_str_c(w->name)) || !mk_str_eq(v->labels, mk_str_c(w->labels)))
        return 0;
    w->found = true;
    w->value = v->value;
    return 1;
}

static int64_t read_counter(const char *name, const char *labels)
{
    struct wanted w = {.name = name, .labels = labels};
    mk_counters_each(compare, &w);
    assert_true(w.found);
    return w.value;
}

/* A request is counted when it has ended, just after the client has its response. */
static void assert_counter(const char *name, const char *labels, int64_t expected)
{
    for (unsigned i = 0; i < 5000 && read_counter(name, labels) != expected; i++)
        usleep(1000);
    assert_int_equal(read_counter(name, labels), expected);
}

#define OK "host=\"example.org\",protocol=\"1.1\",status=\"2xx\""
#define NOT_FOUND "host=\"example.org\",protocol=\"1.0\",status=\"4xx\""
#define BAD "host=\"example.org\",protocol=\"1.1\",status=\"4xx\""

TEST(requests_over_reloads)
{
    start();
    for (unsigned round = 1; round <= 6; round++) {
        for (unsigned i = 0; i < 10; i++)
            ask("GET /a.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        ask("GET /missing HTTP/1.0\r\n\r\n");
        assert_counter("requests", OK, 10 * round);
        assert_counter("requests", NOT_FOUND, round);
        write_conf(1 + round % 3);
        assert_int_equal(mk_server_reload(server), 0);
        assert_counter("reloads", "result=\"ok\"", round);
    }
    assert_true(read_counter("sent_body_bytes", "host=\"example.org\"") >= 60 * 5);
    mk_test_write("conf/monkey.conf", MK_STR("[SERVER\n"));
    assert_true(mk_server_reload(server) < 0);
    assert_counter("reloads", "result=\"failed\"", 1);
    mk_server_stop(server);
    mk_server_free(server);
}

TEST(what_is_refused)
{
    static char head[20000];
    start();
    ask("GET /a.txt HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_counter("rejected_requests", "reason=\"malformed\"", 1);
    memset(head, 'a', sizeof(head) - 1);
    memcpy(head, "GET /a HTTP/1.1\r\nHost: h\r\n", 26);
    ask(head);
    assert_counter("rejected_requests", "reason=\"head_too_large\"", 1);
    assert_counter("requests", BAD, 2);
    mk_server_stop(server);
    mk_server_free(server);
}

TEST(connections_by_state)
{
    int fds[5];
    start();
    for (unsigned i = 0; i < 5; i++)
        fds[i] = open_client();
    assert_counter("connections", "state=\"new\"", 5);
    assert_int_equal(send(fds[0], "GET /", 5, MSG_NOSIGNAL), 5);
    assert_counter("connections", "state=\"read_head\"", 1);
    assert_counter("connections", "state=\"new\"", 4);
    close(fds[1]);
    assert_counter("connections", "state=\"new\"", 3);
    assert_counter("accepted_connections", "", 5);
    for (unsigned i = 0; i < 5; i++)
        if (i != 1)
            close(fds[i]);
    assert_counter("connections", "state=\"new\"", 0);
    assert_counter("connections", "state=\"read_head\"", 0);
    mk_server_stop(server);
    mk_server_free(server);
}

/* Lines that the error log has lost before the server started, and while it ran; another log does not clear them. */
TEST(lost_log_lines)
{
    int unwritable = open("/dev/null", O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    mk_log_to(unwritable, MK_LOG_ERROR);
    mk_log_error("lost before");
    start();
    assert_counter("lost_log_lines", "", 1);
    for (unsigned i = 0; i < 6; i++)
        mk_log_signal(MK_LOG_ERROR, "lost");
    mk_log_info("not wanted");
    mk_log_to(null, MK_LOG_ERROR);
    mk_log_error("written");
    assert_counter("lost_log_lines", "", 7);
    assert_counter("lost_log_lines", "", 7);
    mk_server_stop(server);
    mk_server_free(server);
    mk_log_to(-1, MK_LOG_INFO);
    close(unwritable);
    close(null);
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("root");
    mk_test_mkdir("conf");
    mk_test_mkdir("conf/sites");
    mk_test_write("root/a.txt", MK_STR("hello"));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
