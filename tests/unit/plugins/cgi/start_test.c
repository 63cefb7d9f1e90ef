// SPDX-License-Identifier: Apache-2.0
/* How the process of a script is started: program, arguments, variables, descriptors; and starts that fail. */
#include "script_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

TEST(script_that_is_executed_itself)
{
    script_fixture_open("");
    script_info = "/x";
    ask(GET("/cgi/s/x?q=1"));
    struct script *s = &scripts[0];
    assert_int_equal(n_scripts, 1);
    assert_string_equal(looked_up, "/s/x");
    assert_string_equal(s->path, "/tmp/s");
    assert_string_equal(s->folder, "/tmp");
    assert_int_equal(s->args.len, sizeof("/tmp/s"));
    assert_memory_equal(s->args.data, "/tmp/s", s->args.len);
    assert_string_equal(get_variable(s, "SCRIPT_NAME"), "/cgi/s");
    assert_string_equal(get_variable(s, "PATH_INFO"), "/x");
    assert_string_equal(get_variable(s, "QUERY_STRING"), "q=1");
    assert_string_equal(get_variable(s, "REQUEST_METHOD"), "GET");
    assert_null(get_variable(s, "PATH"));
    assert_true(s->fds[0] < 0 && s->fds[1] >= 0 && s->fds[2] >= 0); /* no body */
    script_fixture_close();
}

TEST(interpreter)
{
    static const char args[] = "/bin/sh\0-e\0/tmp/a.b/s.py";
    script_fixture_open("    Interpreter .py /bin/sh -e\n    Env A $host\n    SpoolRequest Off\n");
    script_file = "/tmp/a.b/s.py";
    may_run = false; /* only the interpreter is executed */
    ask("POST /cgi/s.py HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n");
    struct script *s = &scripts[0];
    assert_int_equal(n_scripts, 1);
    assert_string_equal(s->path, "/bin/sh");
    assert_string_equal(s->folder, "/tmp/a.b");
    assert_int_equal(s->args.len, sizeof(args));
    assert_memory_equal(s->args.data, args, sizeof(args));
    assert_string_equal(get_variable(s, "A"), "h");
    assert_string_equal(get_variable(s, "CONTENT_LENGTH"), "1");
    assert_true(s->fds[0] >= 0);
    script_fixture_close();
}

/* A script in the root of the file system. */
TEST(folder_of_a_script_in_the_root)
{
    script_fixture_open("");
    script_file = "/s";
    ask(GET("/cgi/s"));
    assert_string_equal(scripts[0].folder, "/");
    script_fixture_close();
}

static const struct {
    int err, status;
} failures[] = {{-EAGAIN, 503}, {-ENOMEM, 503}, {-EMFILE, 503}, {-EPIPE, 503},    {-E2BIG, 431},
                {-EACCES, 403}, {-ENOENT, 500}, {-EIO, 500},    {-ETIMEDOUT, 504}};

TEST(starts_that_fail)
{
    for (size_t i = 0; i < COUNT(failures); i++) {
        script_fixture_open("    MaxProcesses 1\n");
        struct mk_test_client *c = ask(GET("/cgi/s"));
        assert_int_equal(mk_test_received(c).len, 0);
        report_start(&scripts[0], failures[i].err);
        expect_status(c, failures[i].status);
        ask(GET("/cgi/s")); /* the place is free again */
        assert_int_equal(n_scripts, 2);
        script_fixture_close();
    }
}

TEST(starts_that_are_refused_at_once)
{
    for (size_t i = 0; i < COUNT(failures); i++) {
        script_fixture_open("    MaxProcesses 1\n");
        start_err = failures[i].err;
        expect_status(ask(GET("/cgi/s")), failures[i].status);
        start_err = 0;
        ask(GET("/cgi/s"));
        assert_int_equal(n_scripts, 1);
        script_fixture_close();
    }
}

/* Returns how many descriptors are open. */
static unsigned count_descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Returns the number that the next descriptor gets. */
static int find_free_descriptor(void)
{
    int fd = dup(0);
    assert_true(fd >= 0);
    close(fd);
    return fd;
}

/* There are descriptors for none, one or two of the pipes; none of them is left. */
TEST(pipes_that_cannot_be_made)
{
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    for (unsigned pipes = 0; pipes < 3; pipes++) {
        script_fixture_open("    SpoolRequest Off\n");
        unsigned n = count_descriptors();
        struct rlimit few = {.rlim_cur = (rlim_t)find_free_descriptor() + 2 * pipes, .rlim_max = before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &few);
        struct mk_test_client *c = ask("POST /cgi/s HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n");
        setrlimit(RLIMIT_NOFILE, &before);
        expect_status(c, 503);
        assert_int_equal(count_descriptors(), n);
        assert_int_equal(n_scripts, 0);
        script_fixture_close();
    }
}

TEST(one_channel_for_a_thread)
{
    script_fixture_open("");
    ask(GET("/cgi/s"));
    ask(GET("/cgi/s"));
    assert_int_equal(n_scripts, 2);
    assert_int_equal(n_channels, 1);
    script_fixture_close();
}
