// SPDX-License-Identifier: Apache-2.0
/* Bodies of requests: into the pipe as they come, or received first. */
#include "script_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define POST(length) "POST /cgi/s HTTP/1.1\r\nHost: h\r\nContent-Length: " length "\r\n\r\n"
#define CHUNKED "POST /cgi/s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

enum { PIPE_BYTES = 4096, LARGE_BYTES = 20000 };

/* Sends more of a body. */
static void send_more(struct mk_test_client *c, const char *text)
{
    mk_test_send(c, mk_str_c(text));
    mk_test_settle(&w);
}

static void expect_input(struct script *s, const char *text)
{
    char got[256];
    ssize_t n = read_input(s, got, sizeof(got));
    assert_int_equal(n, strlen(text));
    assert_string_equal(got, text);
}

TEST(as_it_comes)
{
    char none[8];
    script_fixture_open("    SpoolRequest Off\n");
    struct mk_test_client *c = ask(POST("7") "he");
    report_start(&scripts[0], 0);
    expect_input(&scripts[0], "he");
    assert_int_equal(read_input(&scripts[0], none, sizeof(none)), -EAGAIN);
    send_more(c, "llo");
    expect_input(&scripts[0], "llo");
    send_more(c, "\r\n");
    expect_input(&scripts[0], "\r\n");
    assert_int_equal(read_input(&scripts[0], none, sizeof(none)), 0);
    assert_string_equal(get_variable(&scripts[0], "CONTENT_LENGTH"), "7");
    script_fixture_close();
}

/* Its response is passed on nevertheless. */
TEST(script_that_does_not_read)
{
    script_fixture_open("    SpoolRequest Off\n");
    struct mk_test_client *c = ask(POST("5") "he");
    close(scripts[0].fds[0]);
    scripts[0].fds[0] = -1;
    report_start(&scripts[0], 0);
    send_more(c, "llo");
    print(&scripts[0], "Content-Type: a/b\n\nfine");
    end_script(&scripts[0], 0);
    expect_status(c, 200);
    script_fixture_close();
}

/* What does not fit into the pipe waits, and the client with it. */
TEST(slow_script)
{
    static char bytes[LARGE_BYTES + 1], got[LARGE_BYTES + 1];
    char head[128];
    size_t len = 0;
    script_fixture_open("    SpoolRequest Off\n");
    for (size_t i = 0; i < LARGE_BYTES; i++)
        bytes[i] = (char)('a' + i % 23);
    snprintf(head, sizeof(head), POST("%d"), LARGE_BYTES);
    struct mk_test_client *c = ask(head);
    assert_true(fcntl(scripts[0].fds[0], F_SETPIPE_SZ, PIPE_BYTES) > 0);
    report_start(&scripts[0], 0);
    mk_test_send(c, mk_str(bytes, LARGE_BYTES - 1));
    mk_test_settle(&w);
    assert_true(run_of(&scripts[0])->is_paused);
    size_t taken = c->read_bytes;
    mk_test_send(c, mk_str(bytes + LARGE_BYTES - 1, 1));
    mk_test_settle(&w);
    assert_int_equal(c->read_bytes, taken);
    for (ssize_t n = 1; n > 0; len += (size_t)n) {
        n = read_input(&scripts[0], got + len, sizeof(got) - len);
        assert_true(n >= 0);
    }
    assert_int_equal(len, LARGE_BYTES);
    assert_memory_equal(got, bytes, len);
    script_fixture_close();
}

/* The length of chunks is known once all have come. */
TEST(chunks)
{
    char none[8];
    script_fixture_open("");
    struct mk_test_client *c = ask(CHUNKED "5\r\nhello\r\n");
    assert_int_equal(n_scripts, 0);
    send_more(c, "4\r\n all\r\n0\r\n\r\n");
    assert_int_equal(n_scripts, 1);
    assert_string_equal(get_variable(&scripts[0], "CONTENT_LENGTH"), "9");
    report_start(&scripts[0], 0);
    expect_input(&scripts[0], "hello all");
    assert_int_equal(read_input(&scripts[0], none, sizeof(none)), 0);
    script_fixture_close();
}

TEST(empty_chunks)
{
    script_fixture_open("");
    ask(CHUNKED "0\r\n\r\n");
    assert_int_equal(n_scripts, 1);
    assert_int_equal(scripts[0].fds[0], -1);
    assert_null(get_variable(&scripts[0], "CONTENT_LENGTH"));
    script_fixture_close();
}

static const struct {
    const char *keys, *request;
    int status; /* 0: the script is started */
    bool waits; /* until more has come */
} rows[] = {
    {"", POST("6") "hel", 0, true},
    {"    SpoolRequest Off\n", POST("6") "hel", 0, false},
    {"    SpoolRequest On\n", POST("6") "hel", 0, true},
    {"    SpoolRequest On\n", POST("6") "hello!", 0, false},
    {"    SpoolRequest On\n", GET("/cgi/s"), 0, false},
    {"    SpoolRequest 6\n", POST("6") "hello!", 0, false},
    {"    SpoolRequest 5\n", POST("6") "hello!", 413, false},
    {"    SpoolRequest 5\n", CHUNKED "5\r\nhello\r\n0\r\n\r\n", 0, false},
    {"    SpoolRequest 5\n", CHUNKED "5\r\nhello\r\n1\r\n!\r\n", 413, false},
};

TEST(received_first)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        script_fixture_open(rows[i].keys);
        struct mk_test_client *c = ask(rows[i].request);
        if (rows[i].status)
            expect_status(c, rows[i].status);
        if (n_scripts != (!rows[i].status && !rows[i].waits))
            fail_msg("row %zu: %u scripts", i, n_scripts);
        script_fixture_close();
    }
}
