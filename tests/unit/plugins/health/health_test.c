// SPDX-License-Identifier: Apache-2.0
/* Probes of load balancers: which paths and methods are answered and how, before content and during a stop. */
#include "plugin_host.h"

extern const struct mk_plugin mk_plugin_health;

static int n_taken;

static int send_content(struct mk_request *req)
{
    n_taken++;
    mk_response_end(req);
    return 0;
}

static const struct mk_plugin content = {.name = "content", .on_content = send_content};

static void write_section(const char *lines)
{
    char text[512];
    snprintf(text, sizeof(text), "[SERVER]\n    Listen 127.0.0.1:0\n[HEALTH]\n    %s\n", lines);
    mk_test_write("conf/monkey.conf", mk_str_c(text));
}

static void open_health(const char *lines)
{
    write_section(lines);
    n_taken = 0;
    open_plugin_host("", &mk_plugin_health, &content, NULL);
}

#define BOTH "LivenessPath /live\n    ReadinessPath /ready"

TEST(probes)
{
    static const struct {
        const char *lines, *request;
        const char *status, *end; /* NULL: content */
    } cases[] = {
        {BOTH, "GET /live", "200 OK", "\r\n\r\nok\n"},
        {BOTH, "GET /ready", "200 OK", "\r\n\r\nready\n"},
        {BOTH, "GET /ready?x=1", "200 OK", "\r\n\r\nready\n"},
        {BOTH, "GET /%72eady", "200 OK", "\r\n\r\nready\n"},
        {BOTH, "HEAD /live", "200 OK", "\r\nContent-Length: 3\r\n\r\n"},
        {BOTH, "POST /live", "405 Method Not Allowed", NULL},
        {BOTH, "DELETE /ready", "405 Method Not Allowed", NULL},
        {BOTH, "GET /live/", NULL, NULL},
        {BOTH, "GET /", NULL, NULL},
        {BOTH, "POST /livelier", NULL, NULL},
        {"LivenessPath /live", "GET /ready", NULL, NULL},
        {"LivenessPath /live", "GET /live", "200 OK", "\r\n\r\nok\n"},
        {"ReadinessPath /a*(b|c)$", "GET /a*(b|c)$", "200 OK", "\r\n\r\nready\n"},
        {"ReadinessPath \"/a b\"", "GET /a%20b", "200 OK", "\r\n\r\nready\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char request[128], status[64];
        open_health(cases[i].lines);
        snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", cases[i].request);
        snprintf(status, sizeof(status), "HTTP/1.1 %s\r\n", cases[i].status ? cases[i].status : "200 OK");
        const char *answer = ask_plugin_host(request), *end = cases[i].end ? cases[i].end : "";
        size_t n = strlen(answer), n_end = strlen(end);
        if (strncmp(answer, status, strlen(status)) != 0 || n < n_end || strcmp(answer + n - n_end, end) != 0 ||
            n_taken != !cases[i].status)
            fail_msg("%s with %s: %s", cases[i].request, cases[i].lines, answer);
        if (cases[i].status && cases[i].end)
            assert_non_null(strstr(answer, "\r\nCache-Control: no-store\r\n"));
        close_plugin_host();
    }
}

/* Readiness ends with the order to stop; the process is alive until it has ended. */
TEST(a_stop)
{
    open_health(BOTH);
    struct mk_test_client *live = mk_test_connect(&w, MK_STR("GET /live HTTP/1.1\r\nHost: h\r\n"));
    struct mk_test_client *ready = mk_test_connect(&w, MK_STR("GET /ready HTTP/1.1\r\nHost: h\r\n"));
    mk__conn_drain_all(&w.http);
    mk_test_send(live, MK_STR("\r\n"));
    mk_test_send(ready, MK_STR("\r\n"));
    mk_test_settle(&w);
    assert_non_null(strstr(mk_test_received(live).p, "HTTP/1.1 200 OK\r\n"));
    const char *answer = mk_test_received(ready).p;
    assert_non_null(strstr(answer, "HTTP/1.1 503 "));
    assert_non_null(strstr(answer, "\r\nRetry-After: 1\r\n"));
    assert_non_null(strstr(answer, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(answer, "\r\n\r\ndraining\n"));
    close_plugin_host();
}

TEST(refused_lines)
{
    static const struct {
        const char *lines, *sentence;
    } rows[] = {
        {"LivenessPath live", "one path is needed, which starts with a slash and has no query"},
        {"LivenessPath /live?x", "one path is needed, which starts with a slash and has no query"},
        {"ReadinessPath /a /b", "one path is needed, which starts with a slash and has no query"},
        {"ReadinessPath =/ready", "one path is needed, which starts with a slash and has no query"},
        {"ReadinessPath /a//../b", "monkey.conf:4:21: error: "},
        {"ReadinessPath /a%20b", "4:21: error: \"ReadinessPath\": paths are compared without escapes: write \"/a b\""},
        {"Listener 127.0.0.1:0", "the listener would have nothing to serve"},
        {"LivenessPath /live\n    Listener 127.0.0.1:1", "there is no line \"Listen 127.0.0.1:1\""},
        {"Live /live", "LivenessPath"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        write_section(rows[i].lines);
        expect_refusal("", rows[i].sentence);
    }
}

TEST_FILE(make_plugin_host, mk_test_folder_remove)
