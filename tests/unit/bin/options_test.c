// SPDX-License-Identifier: Apache-2.0
/* The command line: what is understood, and what is said of the rest. */
#include "folder.h"

#include <fcntl.h>

#include "bin/monkey/options.c"

enum { ARGUMENTS_MAX = 12 };

static struct options options;
static char said[4096]; /* on stderr or stdout */

static int read_line(const char *line)
{
    static char text[256];
    char *argv[ARGUMENTS_MAX] = {(char[]){"monkey"}}, *save = NULL;
    int argc = 1;
    snprintf(text, sizeof(text), "%s", line);
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    optind = 0; /* getopt begins anew */
    return options_read(&options, argc, argv);
}

/* Calls with what goes to `fd` kept in `said`. */
static int run_with(int fd, int (*run)(const char *line), const char *line)
{
    int copy = dup(fd), file = open(mk_test_path("said"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(copy >= 0 && file >= 0);
    fflush(NULL);
    dup2(file, fd);
    int code = run(line);
    fflush(NULL);
    dup2(copy, fd);
    ssize_t n = pread(file, said, sizeof(said) - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    close(file);
    close(copy);
    return code;
}

static const struct {
    const char *line;
    struct options expected;
} good[] = {
    {"", {.action = ACTION_SERVE}},
    {"-c dir", {.dir = "dir"}},
    {"-cdir", {.dir = "dir"}},
    {"--config=dir", {.dir = "dir"}},
    {"--config dir", {.dir = "dir"}},
    {"-o dir -p 80 -l 127.0.0.1 -w 4", {.root = "dir", .port = "80", .listen = "127.0.0.1", .workers = "4"}},
    {"--one-shot d --port 0 --listen * --workers 0", {.root = "d", .port = "0", .listen = "*", .workers = "0"}},
    {"htdocs", {.root = "htdocs"}},
    {"-p 80 htdocs -w 2", {.root = "htdocs", .port = "80", .workers = "2"}},
    {"-- -htdocs", {.root = "-htdocs"}},
    {"-l [::1]:80", {.listen = "[::1]:80"}},
    {"-l ::1", {.listen = "::1"}},
    {"-l unix:/run/x", {.listen = "unix:/run/x"}},
    {"-D", {.daemon = true}},
    {"--daemon", {.daemon = true}},
    {"-Dtc dir", {.daemon = true, .action = ACTION_TEST, .dir = "dir"}},
    {"d --list", {.root = "d", .list = true}},
    {"-o d --list", {.root = "d", .list = true}},
    {"-t", {.action = ACTION_TEST}},
    {"--test", {.action = ACTION_TEST}},
    {"--show-config", {.action = ACTION_SHOW}},
    {"--show-config=a.org", {.action = ACTION_SHOW, .name = "a.org"}},
    {"--show-config a.org", {.action = ACTION_SHOW, .name = "a.org"}},
    {"--show-config -o d a.org", {.action = ACTION_SHOW, .root = "d", .name = "a.org"}},
    {"--reference", {.action = ACTION_REFERENCE}},
    {"--reference TLS", {.action = ACTION_REFERENCE, .name = "TLS"}},
    {"-v", {.action = ACTION_VERSION}},
    {"--version", {.action = ACTION_VERSION}},
    {"-b", {.action = ACTION_BUILD}},
    {"--build", {.action = ACTION_BUILD}},
    {"-h", {.action = ACTION_HELP}},
    {"--help", {.action = ACTION_HELP}},
    {"-p 80 -p 81", {.port = "81"}},
};

static void assert_same(const char *a, const char *b)
{
    assert_string_equal(a ? a : "(none)", b ? b : "(none)");
}

TEST(understands)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        const struct options *expected = &good[i].expected;
        assert_int_equal(run_with(STDERR_FILENO, read_line, good[i].line), 0);
        assert_string_equal(said, "");
        assert_int_equal(options.action, expected->action);
        assert_same(options.dir, expected->dir);
        assert_same(options.root, expected->root);
        assert_same(options.name, expected->name);
        assert_same(options.port, expected->port);
        assert_same(options.listen, expected->listen);
        assert_same(options.workers, expected->workers);
        assert_int_equal(options.daemon, expected->daemon);
        assert_int_equal(options.list, expected->list);
    }
}

static const struct {
    const char *line, *said;
} bad[] = {
    {"-x", "monkey: there is no option -x; monkey --help lists them\n"},
    {"-tx", "monkey: there is no option -x; monkey --help lists them\n"},
    {"--wokers 1", "monkey: there is no option --wokers; did you mean --workers?\n"},
    {"--prot 1", "monkey: there is no option --prot; did you mean --port?\n"},
    {"--nonsense", "monkey: there is no option --nonsense; monkey --help lists them\n"},
    {"-p", "monkey: --port needs a value: --port PORT\n"},
    {"--config", "monkey: --config needs a value: --config DIR\n"},
    {"--daemon=yes", "monkey: --daemon takes no value\n"},
    {"--show-config a b", "monkey: a: No such file or directory\n"},
    {"--show-config=a b", "monkey: b: No such file or directory\n"},
    {"--list", "monkey: --list goes with --one-shot; a configuration has a section [DIRLISTING]\n"},
    {"-t /dev", "monkey: /dev is a directory: write -c /dev\n"},
    {"-t -c /dev /dev", "monkey: there is one configuration, /dev: \"/dev\" is too much\n"},
    {"--one-file /dev/null", "monkey: /dev/null is not a regular file\n"},
    {"-v htdocs", "monkey: \"htdocs\" belongs to no option; monkey --help lists them\n"},
    {"a b", "monkey: one directory can be served, not \"a\" and \"b\"\n"},
    {"help", "monkey: there is no directory \"help\"; did you mean --help?\n"},
    {"proxy", "monkey: proxy needs the URL of a backend, such as http://127.0.0.1:8080\n"},
    {"-o a b", "monkey: one directory can be served, not \"a\" and \"b\"\n"},
    {"-c a b", "monkey: --config and a directory to serve (--one-shot) exclude each other\n"},
    {"-c a -o b", "monkey: --config and a directory to serve (--one-shot) exclude each other\n"},
    {"-p 65536", "monkey: --port wants a number from 0 to 65535, not \"65536\"\n"},
    {"-p http", "monkey: --port wants a number from 0 to 65535, not \"http\"\n"},
    {"-w -1", "monkey: --workers wants a number from 0 to 1024, not \"-1\"\n"},
    {"-w 1025", "monkey: --workers wants a number from 0 to 1024, not \"1025\"\n"},
    {"-l localhost",
     "monkey: --listen wants an address such as 127.0.0.1, [::1]:8080 or unix:/path, not \"localhost\"\n"},
    {"-l 1.2.3.4:x",
     "monkey: --listen wants an address such as 127.0.0.1, [::1]:8080 or unix:/path, not \"1.2.3.4:x\"\n"},
    {"-l unix:x", "monkey: --listen wants an address such as 127.0.0.1, [::1]:8080 or unix:/path, not \"unix:x\"\n"},
};

TEST(complains)
{
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(run_with(STDERR_FILENO, read_line, bad[i].line), EXIT_OPTIONS);
        assert_string_equal(said, bad[i].said);
    }
}

static const struct {
    const char *listen, *port, *together;
} addresses[] = {
    {NULL, NULL, NULL},
    {NULL, "80", "80"},
    {"8080", NULL, "8080"},
    {"8080", "80", "80"},
    {"127.0.0.1", NULL, "127.0.0.1:2001"},
    {"127.0.0.1", "80", "127.0.0.1:80"},
    {"127.0.0.1:8080", NULL, "127.0.0.1:8080"},
    {"127.0.0.1:8080", "80", "127.0.0.1:80"},
    {"*", "80", "*:80"},
    {"::1", NULL, "[::1]:2001"},
    {"::1", "80", "[::1]:80"},
    {"[::1]", "80", "[::1]:80"},
    {"[::1]:8080", NULL, "[::1]:8080"},
    {"[::1]:8080", "80", "[::1]:80"},
    {"unix:/run/x", NULL, "unix:/run/x"},
};

TEST(listen)
{
    char text[256];
    for (size_t i = 0; i < COUNT(addresses); i++) {
        struct options o = {.listen = addresses[i].listen, .port = addresses[i].port};
        assert_same(options_listen(&o, text, sizeof(text)), addresses[i].together);
    }
}

static int print_help(const char *line)
{
    (void)line;
    options_help();
    return 0;
}

TEST(help_names_every_option)
{
    run_with(STDOUT_FILENO, print_help, "");
    for (size_t i = 0; i < ROWS; i++) {
        assert_non_null(strstr(said, rows[i].name));
        assert_non_null(strstr(said, rows[i].help));
    }
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)
