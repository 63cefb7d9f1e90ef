// SPDX-License-Identifier: Apache-2.0
/* What scripts write: heads, bodies, and ends that are none. */
#include "script_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STATUS_MS = 100, HEAD_BYTES = 40000 };

static struct script *const s = &scripts[0];

/* Asks for a script, which has started then. */
static struct mk_test_client *begin(const char *text, const char *keys)
{
    script_fixture_open(keys);
    struct mk_test_client *c = ask(text);
    assert_int_equal(n_scripts, 1);
    report_start(s, 0);
    return c;
}

/* Tells whether the response has that text; call it once. */
static bool has_got(struct mk_test_client *c, const char *text)
{
    return strstr(mk_test_received(c).p, text) != NULL;
}

TEST(head_in_pieces)
{
    static const char head[] = "Status: 404 Gone astray\r\nContent-Type: a/b\nContent-Length: 4\n\n";
    struct mk_test_client *c = begin(GET("/cgi/s"), "");
    for (const char *at = head; *at; at++) {
        const char one[2] = {*at, '\0'};
        assert_int_equal(mk_test_received(c).len, 0);
        print(s, one);
    }
    print(s, "body");
    struct mk_str got = mk_test_received(c);
    assert_true(mk_str_starts(got, MK_STR("HTTP/1.1 404 ")));
    assert_non_null(strstr(got.p, "Content-Type: a/b\r\n"));
    assert_non_null(strstr(got.p, "\r\n\r\nbody"));
    end_script(s, 0);
    assert_null(s->child);
    script_fixture_close();
}

/* Its length is not known: the end of the output is the end of the response. */
TEST(body_without_length)
{
    struct mk_test_client *c = begin(GET("/cgi/s"), "");
    print(s, "Content-Type: a/b\n\nabc");
    assert_false(has_got(c, "0\r\n\r\n"));
    end_script(s, 0);
    assert_true(has_got(c, "0\r\n\r\n"));
    assert_string_equal(mk_test_state(c), "idle");
    script_fixture_close();
}

static const struct {
    const char *text;
    int status;
} faults[] = {
    {"", 502},
    {"Content-Type: a/b\n", 502},
    {"no field\n\n", 502},
    {"HTTP/1.1 200 OK\n\n", 502},
    {"Status: 200\nStatus: 201\n\n", 502},
    {" folded: x\n\n", 502},
};

TEST(heads_that_are_none)
{
    for (size_t i = 0; i < COUNT(faults); i++) {
        struct mk_test_client *c = begin(GET("/cgi/s"), "");
        print(s, faults[i].text);
        if (s->child && s->fds[1] >= 0)
            end_script(s, 0);
        expect_status(c, faults[i].status);
        script_fixture_close();
    }
}

TEST(head_that_is_too_long)
{
    static char line[HEAD_BYTES];
    struct mk_test_client *c = begin(GET("/cgi/s"), "");
    memset(line, 'x', sizeof(line) - 1);
    memcpy(line, "A: ", 3);
    print(s, line);
    expect_status(c, 502);
    assert_int_equal(s->stops, 1);
    end_script(s, SIGTERM);
    script_fixture_close();
}

/* A client must not take it for complete. */
TEST(script_that_is_killed)
{
    static const int statuses[] = {SIGKILL, SIGSEGV | 0x80, -1};
    for (size_t i = 0; i < COUNT(statuses); i++) {
        struct mk_test_client *c = begin(GET("/cgi/s"), "");
        print(s, "Content-Type: a/b\n\nabc");
        end_script(s, statuses[i]);
        struct mk_str got = mk_test_received(c);
        assert_non_null(strstr(got.p, "abc"));
        assert_null(strstr(got.p, "0\r\n\r\n"));
        assert_true(c->closed || c->shut);
        script_fixture_close();
    }
}

/* A status that says an error does not: the output is complete. */
TEST(script_that_fails_behind_its_output)
{
    struct mk_test_client *c = begin(GET("/cgi/s"), "");
    print(s, "Content-Type: a/b\n\nabc");
    end_script(s, 1 << 8);
    assert_true(has_got(c, "0\r\n\r\n"));
    script_fixture_close();
}

/* The status is awaited for a moment only. */
TEST(script_that_continues_behind_its_output)
{
    struct mk_test_client *c = begin(GET("/cgi/s"), "");
    print(s, "Content-Type: a/b\n\nabc");
    close_output(s);
    mk_test_pass(&w, STATUS_MS - 1);
    assert_false(has_got(c, "0\r\n\r\n"));
    mk_test_pass(&w, 1);
    assert_true(has_got(c, "0\r\n\r\n"));
    assert_non_null(s->child);
    end_script(s, 0);
    assert_null(s->child);
    script_fixture_close();
}

TEST(output_that_ends_without_a_head)
{
    struct mk_test_client *c = begin(GET("/cgi/s"), "");
    close_output(s);
    mk_test_pass(&w, STATUS_MS);
    expect_status(c, 502);
    assert_int_equal(s->stops, 1);
    end_script(s, SIGTERM);
    script_fixture_close();
}

static const struct {
    const char *request, *output;
} without_body[] = {
    {"HEAD /cgi/s HTTP/1.1\r\nHost: h\r\n\r\n", "Content-Type: a/b\n\nabc"},
    {GET("/cgi/s"), "Status: 204\n\nabc"},
    {GET("/cgi/s"), "Status: 304\n\nabc"},
};

/* What the script writes is dropped, and it is not ended for it. */
TEST(responses_without_body)
{
    for (size_t i = 0; i < COUNT(without_body); i++) {
        struct mk_test_client *c = begin(without_body[i].request, "");
        print(s, without_body[i].output);
        struct mk_str got = mk_test_received(c);
        assert_string_equal(got.p + got.len - 4, "\r\n\r\n");
        print(s, "more");
        assert_int_equal(mk_test_received(c).len, 0);
        assert_int_equal(s->stops, 0);
        end_script(s, 0);
        assert_null(s->child);
        script_fixture_close();
    }
}

/* The pipe is not read while the client takes nothing and what is kept has no more room. */
TEST(client_that_takes_nothing)
{
    static char piece[16385];
    struct mk_test_client *c = begin(GET("/cgi/s"), "    BufferResponse Off\n");
    memset(piece, 'x', sizeof(piece) - 1);
    print(s, "Content-Type: a/b\nContent-Length: 655360\n\n");
    c->room = 0;
    unsigned n = 0;
    for (; n < 40 && run_of(s)->out_is_watched; n++)
        print(s, piece);
    assert_true(n > 4 && n < 40);
    mk_test_take(c, 1 << 20);
    mk_test_settle(&w);
    assert_true(run_of(s)->out_is_watched);
    for (; n < 40; n++)
        print(s, piece);
    end_script(s, 0);
    assert_int_equal(c->from_server.len,
                     655360 + (size_t)(strstr(c->from_server.p, "\r\n\r\n") + 4 - c->from_server.p));
    script_fixture_close();
}
