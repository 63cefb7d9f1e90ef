// SPDX-License-Identifier: Apache-2.0
/* Local redirects: to scripts, to files, and those that are refused. */
#include "script_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { REDIRECTS_MAX = 5 };

static const char on[] =
    "    LocalRedirect On\n    MaxProcesses 1\n[CGI]\n    Match /other\n    Root /usr\n    Env SECTION other\n";

/* The script that runs last answers with a head. */
static void answer(const char *head)
{
    struct script *s = &scripts[n_scripts - 1];
    report_start(s, 0);
    print(s, head);
}

/* Its request stays, but for method, body, path and query. The next one starts when the first one has ended. */
TEST(to_another_script)
{
    script_fixture_open(on);
    struct mk_test_client *c = ask("POST /cgi/s?a HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nContent-Length: 3\r\n\r\nabc");
    answer("Location: /cgi/b%20c?q=1#f\n\n");
    assert_int_equal(n_scripts, 1);
    end_script(&scripts[0], 0);
    assert_int_equal(n_scripts, 2);
    struct script *s = &scripts[1];
    assert_string_equal(looked_up, "/b c");
    assert_string_equal(get_variable(s, "REQUEST_METHOD"), "GET");
    assert_string_equal(get_variable(s, "QUERY_STRING"), "q=1");
    assert_string_equal(get_variable(s, "REQUEST_URI"), "/cgi/b%20c?q=1");
    assert_string_equal(get_variable(s, "SCRIPT_NAME"), "/cgi/b c");
    assert_string_equal(get_variable(s, "HTTP_X_ONE"), "1");
    assert_null(get_variable(s, "CONTENT_LENGTH"));
    assert_int_equal(s->fds[0], -1);
    answer("Content-Type: a/b\n\nfine");
    end_script(s, 0);
    expect_status(c, 200);
    script_fixture_close();
}

/* The place is one of that section. */
TEST(to_a_script_of_another_section)
{
    script_fixture_open(on);
    ask(GET("/cgi/s"));
    answer("Location: /other/x\n\n");
    end_script(&scripts[0], 0);
    assert_int_equal(n_scripts, 2);
    assert_string_equal(get_variable(&scripts[1], "SECTION"), "other");
    assert_int_equal(run_of(&scripts[1])->slots->running, 1);
    answer("Location: /cgi/s\n\n"); /* this section has LocalRedirect Off */
    assert_int_equal(n_scripts, 2);
    end_script(&scripts[1], 0);
    script_fixture_close();
}

TEST(without_the_directive)
{
    script_fixture_open("");
    struct mk_test_client *c = ask(GET("/cgi/s"));
    answer("Location: /cgi/b\n\n");
    expect_status(c, 302);
    end_script(&scripts[0], 0);
    assert_int_equal(n_scripts, 1);
    script_fixture_close();
}

TEST(five_at_most)
{
    script_fixture_open(on);
    struct mk_test_client *c = ask(GET("/cgi/s"));
    for (unsigned i = 0; i < REDIRECTS_MAX; i++) {
        answer("Location: /cgi/s\n\n");
        end_script(&scripts[i], 0);
        assert_int_equal(n_scripts, i + 2);
        assert_int_equal(mk_test_received(c).len, 0);
    }
    answer("Location: /cgi/s\n\n");
    expect_status(c, 502);
    end_script(&scripts[REDIRECTS_MAX], SIGTERM);
    assert_int_equal(n_scripts, REDIRECTS_MAX + 1);
    script_fixture_close();
}

static const char *const wrong[] = {
    "Location: /cgi/../x\n\n", "Location: /cgi/./x\n\n", "Location: /cgi//x\n\n",
    "Location: /a%00b\n\n",    "Location: /a%zz\n\n",    "Location: /%2e%2e\n\n",
};

TEST(paths_that_are_not_normalized)
{
    for (size_t i = 0; i < COUNT(wrong); i++) {
        script_fixture_open(on);
        struct mk_test_client *c = ask(GET("/cgi/s"));
        answer(wrong[i]);
        expect_status(c, 502);
        end_script(&scripts[0], SIGTERM);
        assert_int_equal(n_scripts, 1);
        script_fixture_close();
    }
}

/* What the client may not have, it does not get by a script. */
TEST(denied_paths)
{
    static const char *const heads[] = {"Location: /cgi/b\n\n", "Location: /file\n\n"};
    for (size_t i = 0; i < COUNT(heads); i++) {
        script_fixture_open(on);
        struct mk_test_client *c = ask(GET("/cgi/s"));
        access_status = 401;
        answer(heads[i]);
        expect_status(c, 403);
        assert_int_equal(scripts[0].stops, 1);
        end_script(&scripts[0], SIGTERM);
        assert_int_equal(n_scripts, 1);
        script_fixture_close();
    }
}

static int open_text(const char *text)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

/* A disk thread opens the file. */
static void wait_response(const struct mk_test_client *c)
{
    while (!c->from_server.len)
        assert_true(mk_test_wait_wakeup(&w));
}

TEST(to_a_file)
{
    script_fixture_open(on);
    struct mk_test_client *c = ask(GET("/cgi/s"));
    opened_fd = open_text("a file");
    answer("Location: /file.txt\n\n");
    wait_response(c);
    struct mk_str got = mk_test_received(c);
    assert_true(mk_str_starts(got, MK_STR("HTTP/1.1 200 ")));
    assert_non_null(strstr(got.p, "\r\n\r\na file"));
    assert_int_equal(scripts[0].stops, 0);
    print(&scripts[0], "dropped");
    end_script(&scripts[0], 0);
    assert_null(scripts[0].child);
    script_fixture_close();
}

TEST(to_a_file_that_cannot_be_sent)
{
    static const int rows[][2] = {{-ENOENT, 404}, {-EACCES, 403}, {-EISDIR, 404}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        script_fixture_open(on);
        struct mk_test_client *c = ask(GET("/cgi/s"));
        opened_fd = rows[i][0];
        answer("Location: /file.txt\n\n");
        wait_response(c);
        expect_status(c, rows[i][1]);
        end_script(&scripts[0], 0);
        script_fixture_close();
    }
}

/* The client leaves between two scripts. */
TEST(client_that_leaves_amid_it)
{
    script_fixture_open(on);
    struct mk_test_client *c = ask(GET("/cgi/s"));
    answer("Location: /cgi/b\n\n");
    mk_test_reset(c);
    mk_test_settle(&w);
    end_script(&scripts[0], SIGTERM);
    assert_int_equal(n_scripts, 1);
    script_fixture_close();
}
