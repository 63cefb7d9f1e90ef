// SPDX-License-Identifier: Apache-2.0
/* The life of a run: places, waits, and which of its two ends comes first. */
#include "script_fixture.h"

#include <errno.h>
#include <signal.h>

enum { GRACE_MS = 2000, TIMEOUT_MS = 60000, QUEUE_MS = 5000, ENDS_MS = 100000 };

static const struct {
    int lookup_err;
    bool may_run;
    int status;
} missing[] = {{-ENOENT, true, 404}, {-EISDIR, true, 404}, {-EACCES, true, 403}, {0, false, 403}, {-EMFILE, true, 503}};

TEST(scripts_that_cannot_be_run)
{
    for (size_t i = 0; i < COUNT(missing); i++) {
        script_fixture_open("    MaxProcesses 1\n    Queue 0\n");
        lookup_err = missing[i].lookup_err;
        may_run = missing[i].may_run;
        expect_status(ask(GET("/cgi/s")), missing[i].status);
        lookup_err = 0;
        may_run = true;
        ask(GET("/cgi/s"));
        assert_int_equal(n_scripts, 1);
        script_fixture_close();
    }
}

/* Where the script is looked for, below Root. */
TEST(paths)
{
    static const char *const rows[][2] = {{GET("/cgi/a/b"), "/a/b"},
                                          {GET("/cgi/"), "/"},
                                          {GET("/cgi"), "/"},
                                          {GET("/cgi/%41"), "/A"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        script_fixture_open("");
        ask(rows[i][0]);
        assert_string_equal(looked_up, rows[i][1]);
        script_fixture_close();
    }
}

TEST(one_script_for_all_paths)
{
    script_fixture_open("[CGI]\n    Match /one\n    Script /bin/true\n");
    ask(GET("/one/a/b"));
    assert_int_equal(n_scripts, 1);
    assert_string_equal(looked_up, "");
    assert_string_equal(scripts[0].path, "/bin/true");
    assert_string_equal(get_variable(&scripts[0], "SCRIPT_NAME"), "/one");
    assert_string_equal(get_variable(&scripts[0], "PATH_INFO"), "/a/b");
    script_fixture_close();
}

/* Requests wait in their order, and further ones are refused. */
TEST(queue)
{
    script_fixture_open("    MaxProcesses 1\n    Queue 2\n");
    ask(GET("/cgi/s"));
    ask(GET("/cgi/s?second"));
    ask(GET("/cgi/s?third"));
    expect_status(ask(GET("/cgi/s")), 503);
    assert_int_equal(n_scripts, 1);
    report_start(&scripts[0], 0);
    print(&scripts[0], "Content-Type: a/b\n\n");
    close_output(&scripts[0]);
    assert_int_equal(n_scripts, 1); /* it still runs */
    end_script(&scripts[0], 0);
    assert_int_equal(n_scripts, 2);
    assert_string_equal(get_variable(&scripts[1], "QUERY_STRING"), "second");
    report_start(&scripts[1], -EAGAIN);
    assert_int_equal(n_scripts, 3);
    assert_string_equal(get_variable(&scripts[2], "QUERY_STRING"), "third");
    script_fixture_close();
}

TEST(wait_in_the_queue)
{
    script_fixture_open("    MaxProcesses 1\n");
    ask(GET("/cgi/s"));
    struct mk_test_client *c = ask(GET("/cgi/s"));
    mk_test_pass(&w, QUEUE_MS - 1);
    assert_int_equal(mk_test_received(c).len, 0);
    mk_test_pass(&w, 1);
    expect_status(c, 503);
    report_start(&scripts[0], 0);
    end_script(&scripts[0], 0);
    assert_int_equal(n_scripts, 1);
    script_fixture_close();
}

/* A client that leaves the queue gives its place in it back. */
TEST(client_that_leaves_the_queue)
{
    script_fixture_open("    MaxProcesses 1\n    Queue 1\n");
    ask(GET("/cgi/s"));
    mk_test_reset(ask(GET("/cgi/s?left")));
    mk_test_settle(&w);
    ask(GET("/cgi/s?stays"));
    report_start(&scripts[0], 0);
    end_script(&scripts[0], 0);
    assert_int_equal(n_scripts, 2);
    assert_string_equal(get_variable(&scripts[1], "QUERY_STRING"), "stays");
    script_fixture_close();
}

/* Output gives a script more time. */
TEST(silence)
{
    script_fixture_open("");
    struct mk_test_client *c = ask(GET("/cgi/s"));
    report_start(&scripts[0], 0);
    mk_test_pass(&w, TIMEOUT_MS - 1);
    print(&scripts[0], "Content-Type: a/b\n");
    mk_test_pass(&w, TIMEOUT_MS - 1);
    assert_int_equal(scripts[0].stops, 0);
    mk_test_pass(&w, 1);
    assert_int_equal(scripts[0].stops, 1);
    assert_int_equal(scripts[0].grace_ms, GRACE_MS);
    expect_status(c, 504);
    end_script(&scripts[0], SIGTERM);
    assert_null(scripts[0].child);
    script_fixture_close();
}

/* Behind the head the response is cut. */
TEST(silence_in_the_body)
{
    script_fixture_open("");
    struct mk_test_client *c = ask(GET("/cgi/s"));
    report_start(&scripts[0], 0);
    print(&scripts[0], "Content-Type: a/b\n\nabc");
    mk_test_pass(&w, TIMEOUT_MS);
    assert_int_equal(scripts[0].stops, 1);
    assert_null(strstr(mk_test_received(c).p, "0\r\n\r\n"));
    assert_true(c->closed || c->shut);
    end_script(&scripts[0], SIGTERM);
    script_fixture_close();
}

/* The script is ended in each phase, and its place is free once it has. */
TEST(client_that_leaves)
{
    static const char *const outputs[] = {NULL, "", "Content-Type: a/b\n\n", "Content-Type: a/b\n\nabc"};
    for (size_t i = 0; i < COUNT(outputs); i++) {
        script_fixture_open("    MaxProcesses 1\n");
        struct mk_test_client *c = ask(GET("/cgi/s"));
        if (outputs[i])
            report_start(&scripts[0], 0);
        if (outputs[i])
            print(&scripts[0], outputs[i]);
        mk_test_reset(c);
        mk_test_settle(&w);
        assert_int_equal(scripts[0].stops, 1);
        assert_int_equal(scripts[0].grace_ms, GRACE_MS);
        ask(GET("/cgi/s"));
        assert_int_equal(n_scripts, 1);
        if (!outputs[i])
            report_start(&scripts[0], 0);
        end_script(&scripts[0], SIGTERM);
        assert_null(scripts[0].child);
        assert_int_equal(n_scripts, 2);
        script_fixture_close();
    }
}

/* A complete response does not end the script, but it has a last time. */
TEST(script_that_outlives_its_request)
{
    script_fixture_open("");
    struct mk_test_client *c = ask(GET("/cgi/s"));
    report_start(&scripts[0], 0);
    print(&scripts[0], "Content-Length: 3\n\nabc");
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_int_equal(scripts[0].stops, 0);
    mk_test_pass(&w, TIMEOUT_MS - 1);
    print(&scripts[0], "more");
    assert_int_equal(scripts[0].stops, 0);
    mk_test_pass(&w, 1);
    assert_int_equal(scripts[0].stops, 1);
    end_script(&scripts[0], SIGTERM);
    assert_null(scripts[0].child);
    script_fixture_close();
}

/* The worker stops: the starter ends what runs. */
TEST(scripts_of_a_worker_that_stops)
{
    script_fixture_open("");
    ask(GET("/cgi/s"));
    ask(GET("/cgi/s"));
    report_start(&scripts[0], 0);
    print(&scripts[0], "Content-Type: a/b\n\nabc");
    script_fixture_close();
    assert_true(scripts[0].is_dropped && scripts[1].is_dropped);
}
