// SPDX-License-Identifier: Apache-2.0
/*
 * What a server leaves of the process that it is in. Usage: process descriptors | growth ROUNDS TEXT | problems TEXT |
 * folder FOLDER; in TEXT a "|" begins a line.
 */
#include <monkey/embed.h>

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n"

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static FILE *out;

static size_t count_bytes(void)
{
    if (__sanitizer_get_current_allocated_bytes)
        return __sanitizer_get_current_allocated_bytes();
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void require(int result, struct mk_server *s)
{
    if (result >= 0)
        return;
    fprintf(out, "%s\n", mk_server_error(s));
    exit(1);
}

static struct mk_server *make_server(const char *rows)
{
    char text[4096] = TEXT;
    strncat(text, rows, sizeof(text) - sizeof(TEXT));
    for (char *c = text; (c = strchr(c, '|'));)
        *c = '\n';
    struct mk_server *s = mk_server_new();
    require(mk_server_text(s, text), s);
    return s;
}

static void print_links(const char *when)
{
    for (int fd = 0; fd < 3; fd++) {
        char path[32], link[256] = "closed";
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, link, sizeof(link) - 1);
        if (n > 0)
            link[n] = '\0';
        fprintf(out, "%s %d %s\n", when, fd, link);
    }
}

/* They are closed before the server is made, and one of them again before it starts. */
static void show_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    struct mk_server *s = make_server("");
    close(1);
    require(mk_server_start(s), s);
    print_links("runs");
    if (dup2(fileno(out), 2) < 0) /* the program's own */
        exit(1);
    require(mk_server_stop(s), s);
    mk_server_free(s);
    print_links("freed");
}

/* The same server is started again and again. */
static void show_growth(int rounds, const char *text)
{
    struct mk_server *s = make_server(text);
    size_t before = 0;
    for (int i = -20; i < rounds; i++) {
        if (i == 0)
            before = count_bytes();
        require(mk_server_start(s), s);
        require(mk_server_stop(s), s);
    }
    fprintf(out, "grown by %td\n", (ptrdiff_t)(count_bytes() - before));
    mk_server_free(s);
}

static void print_problem(const struct mk_problem *problem, void *ctx)
{
    (void)ctx;
    fprintf(out, "%s %u:%u %s%s\n", problem->place, problem->line, problem->column,
            problem->is_warning ? "warning: " : "", problem->message);
}

static void show_problems(struct mk_server *s)
{
    mk_server_load(s);
    mk_server_each_problem(s, print_problem, NULL);
    mk_server_free(s);
}

int main(int argc, char **argv)
{
    out = fdopen(fcntl(1, F_DUPFD_CLOEXEC, 10), "w");
    const char *what = argc > 1 ? argv[1] : "", *text = argc > 2 ? argv[argc - 1] : "";
    if (strcmp(what, "descriptors") == 0) {
        show_descriptors();
    } else if (strcmp(what, "growth") == 0) {
        show_growth((int)strtol(argv[2], NULL, 10), argc > 3 ? text : "");
    } else if (strcmp(what, "problems") == 0) {
        show_problems(make_server(text));
    } else {
        struct mk_server *s = make_server("");
        require(mk_server_folder(s, text), s);
        show_problems(s);
    }
    return fclose(out);
}
