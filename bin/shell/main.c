// SPDX-License-Identifier: Apache-2.0
/*
 * monkey-shell, which `monkey shell` executes: shows and controls a running server through the socket of the plugin
 * cheetah. A separate program, so that line editing never enters the server.
 */
#include "shell.h"

#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_DONE, EXIT_FAILED, EXIT_USAGE };

static const char usage[] =
    "usage: monkey shell [-s SOCKET] [--json] [COMMAND [ARGUMENT...]]\n"
    "\n"
    "Shows and controls a running server that has a section [CHEETAH]. Without a command it reads commands from the\n"
    "terminal; help lists them.\n"
    "\n"
    "  -s, --socket SOCKET   the Listen of [CHEETAH]; else $MONKEY_SHELL_SOCKET, or where servers have it by default\n"
    "  -j, --json            print the objects of the answer, one in a line\n"
    "  -h, --help            print this\n"
    "\n"
    "exit codes: 0 done, 1 the command has failed, 2 no connection, or wrong usage\n";

struct arguments {
    const char *socket;
    bool json, help;
};

/* Returns false after a message. Options may follow the command, as in `status --json`. */
static bool read_arguments(int argc, char **argv, struct arguments *ret)
{
    static const struct option longs[] = {{"socket", required_argument, NULL, 's'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    *ret = (struct arguments){.socket = NULL};
    for (int c; (c = getopt_long(argc, argv, "s:jh", longs, NULL)) != -1;) {
        if (c == 's')
            ret->socket = optarg;
        else if (c == 'j')
            ret->json = true;
        else if (c == 'h')
            ret->help = true;
        else
            return false;
    }
    return true;
}

static bool knows_sequences(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

/* A locale that does not exist is that of ASCII. */
static struct text_style get_style(void)
{
    const char *no = getenv("NO_COLOR");
    bool terminal = isatty(STDOUT_FILENO);
    setlocale(LC_CTYPE, "");
    return (struct text_style){.terminal = terminal,
                               .colours = knows_sequences() && !(no && no[0]),
                               .unicode = terminal && strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
}

/* ── commands of the shell itself ── */

static bool is_command(struct mk_str line, const char *name, const char *letter, struct mk_str *ret_rest)
{
    line = mk_str_trim(line);
    struct mk_str word = mk_str_split(&line, ' ');
    *ret_rest = mk_str_trim(line);
    return mk_str_ieq(word, mk_str_c(name)) || mk_str_eq(word, mk_str_c(letter));
}

static double get_seconds(struct mk_str text)
{
    char copy[32];
    snprintf(copy, sizeof(copy), "%.*s", (int)(text.len < 31 ? text.len : 31), text.p ? text.p : "");
    double seconds = text.len ? atof(copy) : 1;
    return seconds >= 0.1 && seconds <= 3600 ? seconds : 1;
}

/* Runs a line. Returns as view_ask(); 2: the shell ends. */
static int run_line(struct link *l, struct mk_str line, const struct view_options *options)
{
    struct mk_str rest;
    if (is_command(line, "quit", "\\q", &rest) || is_command(line, "exit", "\\q", &rest))
        return 2;
    if (is_command(line, "clear", "\\c", &rest))
        return printf("\033[H\033[2J") < 0 ? 2 : 1;
    if (is_command(line, "top", "top", &rest))
        return top_run(l, get_seconds(rest), options);
    return mk_str_trim(line).len ? view_ask(l, line, options) : 1;
}

static int run_once(struct link *l, char **words, int n, const struct view_options *options)
{
    struct mk_buf line;
    int result;
    mk_buf_init(&line, 64 * 1024);
    if (strcmp(words[0], "top") == 0) {
        result = top_run(l, get_seconds(mk_str_c(n > 1 ? words[1] : "")), options);
    } else if (strcmp(words[0], "quit") == 0 || strcmp(words[0], "clear") == 0) {
        result = 1;
    } else {
        link_add_words(&line, words, n);
        result = line.err ? 0 : view_ask(l, mk_buf_str(&line), options);
    }
    mk_buf_release(&line);
    return result > 0 ? EXIT_DONE : result == 0 ? EXIT_FAILED : EXIT_USAGE;
}

/* ── reading commands ── */

static int run_terminal(struct link *l, const struct view_options *options)
{
    int result = 1;
    printf("monkey shell, connected to %s; help lists the commands, quit leaves\n", l->path);
    edit_open(l);
    for (char *line; result >= 0 && result != 2 && (line = edit_read("monkey> ")); free(line))
        result = run_line(l, mk_str_c(line), options);
    if (result == 1 || result == 0)
        putchar('\n');
    edit_close();
    return result < 0 ? EXIT_USAGE : EXIT_DONE;
}

/* Commands from a file or a pipe: ends with the first that fails. */
static int run_lines(struct link *l, const struct view_options *options)
{
    char *line = NULL;
    size_t size = 0;
    int result = 1;
    for (ssize_t n; result == 1 && (n = getline(&line, &size, stdin)) >= 0;)
        result = run_line(l, mk_str(line, (size_t)n - (n && line[n - 1] == '\n')), options);
    free(line);
    return result > 0 ? EXIT_DONE : result == 0 ? EXIT_FAILED : EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct arguments a;
    struct link l;
    signal(SIGPIPE, SIG_DFL); /* which the server ignores */
    if (!read_arguments(argc, argv, &a)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (a.help)
        return fputs(usage, stdout) < 0 ? EXIT_FAILED : EXIT_DONE;
    if (link_open(&l, a.socket) < 0)
        return EXIT_USAGE;
    bool terminal = isatty(STDIN_FILENO) && optind == argc;
    struct view_options options = {.json = a.json,
                                   .interactive = isatty(STDIN_FILENO),
                                   .full_screen = knows_sequences(),
                                   .style = get_style()};
    int code = optind < argc ? run_once(&l, argv + optind, argc - optind, &options)
               : terminal    ? run_terminal(&l, &options)
                             : run_lines(&l, &options);
    link_close(&l);
    return code;
}
