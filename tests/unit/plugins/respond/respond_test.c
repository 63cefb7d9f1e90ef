// SPDX-License-Identifier: Apache-2.0
/*
 * Fixed answers: what is sent for which request, and files that a disk thread opens, for requests that get their
 * answer and for those that are gone by then. The kernel never resolves a link of /proc without waiting.
 */
#include "plugin_host.h"

#include "loop/job.h"

extern const struct mk_plugin mk_plugin_respond;

static struct mk_thread_pool jobs;

static const struct mk_plugin none = {.name = "none"};

#define ASK(method, target) method " " target " HTTP/1.1\r\nHost: h\r\n\r\n"
#define RULE(lines) "[RESPOND]\n" lines

TEST(answers)
{
    static const struct {
        const char *sections, *request, *line, *rest;
    } answers[] = {
        {RULE("Text a\n"), ASK("GET", "/"), "HTTP/1.1 200 ", "Content-Type: text/plain; charset=utf-8\r\n"},
        {RULE("Text a\n"), ASK("PATCH", "/x"), "HTTP/1.1 200 ", "\r\n\r\na"},
        {RULE("Status 302\nHeader Location /n\n"), ASK("GET", "/"), "HTTP/1.1 302 ", "Location: /n\r\n"},
        {RULE("Status 503\nHeader Retry-After 9\n"), ASK("GET", "/"), "HTTP/1.1 503 ", "Retry-After: 9\r\n"},
        {RULE("Match /a\nText a\n"), ASK("GET", "/a/%2F"), "HTTP/1.1 200 ", ""},
        {RULE("Match /a\nText a\n"), ASK("GET", "/b"), "HTTP/1.1 404 ", ""},
        {RULE("When method PUT\nText a\n"), ASK("GET", "/"), "HTTP/1.1 404 ", ""},
        {RULE("When method PUT\nText a\n") RULE("Status 204\n"), ASK("GET", "/"), "HTTP/1.1 204 ", ""},
        {RULE("Status 299\n"), ASK("OPTIONS", "*"), "HTTP/1.1 204 ", ""},
    };
    for (size_t i = 0; i < COUNT(answers); i++) {
        open_plugin_host(answers[i].sections, &mk_plugin_respond, &none, NULL);
        const char *got = ask_plugin_host(answers[i].request);
        if (strncmp(got, answers[i].line, strlen(answers[i].line)) != 0 || !strstr(got, answers[i].rest))
            fail_msg("%s for %s: %s", answers[i].sections, answers[i].request, got);
        close_plugin_host();
    }
}

/* ── files ── */

static void open_all(void)
{
    mk_test_write("file.txt", MK_STR("hello"));
    mk__job_open_pool(&jobs, 1);
    open_plugin_host(RULE("File /proc/self/cwd/file.txt\n"), &mk_plugin_respond, &none, &jobs);
}

static void close_all(void)
{
    mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&jobs);
    close_plugin_host();
}

/* What is sent once the disk thread has opened the file. */
static const char *await_answer(struct mk_test_client *c)
{
    struct mk_str text = mk_test_received(c);
    for (int i = 0; i < 1000 && !text.len; i++) {
        assert_true(mk_test_wait_wakeup(&w));
        text = mk_test_received(c);
    }
    return text.len ? text.p : "";
}

TEST(waits_for_a_disk_thread)
{
    open_all();
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(mk_test_state(c), "handler");
    const char *got = await_answer(c);
    assert_non_null(strstr(got, "HTTP/1.1 200 "));
    assert_non_null(strstr(got, "Content-Type: text/plain"));
    unlink(mk_test_path("file.txt"));
    assert_non_null(strstr(await_answer(mk_test_connect(&w, MK_STR(GET))), "HTTP/1.1 404 "));
    close_all();
}

TEST(is_gone_before_its_file_is_open)
{
    open_all();
    mk_test_connect(&w, MK_STR(GET));
    mk__conn_abort_all(&w.http);
    assert_true(mk_test_wait_wakeup(&w));
    assert_non_null(strstr(await_answer(mk_test_connect(&w, MK_STR(GET))), "HTTP/1.1 200 "));
    close_all();
}

TEST(without_a_disk_thread)
{
    open_all();
    w.loop.thread_pool = NULL;
    assert_non_null(strstr(await_answer(mk_test_connect(&w, MK_STR(GET))), "HTTP/1.1 503 "));
    w.loop.thread_pool = &jobs;
    assert_non_null(strstr(await_answer(mk_test_connect(&w, MK_STR(GET))), "HTTP/1.1 200 "));
    close_all();
}

TEST(refused_lines)
{
    expect_refusal(RULE("Status 199"), "default:4:12: error: ");
    expect_refusal(RULE("Text a\nFile /dev/null"), "default:5:10: error: \"File\": the file is not a regular file");
    expect_refusal(RULE("Status 204\nText a"), "a response with the status 204 has no body");
    expect_refusal(RULE("Header Content-Length 3"), "only the server sets this header");
}

TEST_FILE(make_plugin_host, mk_test_folder_remove)
