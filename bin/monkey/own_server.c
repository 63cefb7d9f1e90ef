// SPDX-License-Identifier: Apache-2.0
/*
 * Compares the folder of a configuration with the one that the command line of a process names (own_server.h).
 */
#include "own_server.h"

#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROC_BYTES = 64 };

/* Reads a file of /proc/PID, cut to `size` with a NUL at its end. Returns the number of its bytes. */
static size_t read_file(int pid, const char *name, char *to, size_t size)
{
    char path[PROC_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, to, size - 1);
    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* ── the command line ── */

/* The folder that a command line names, and whether it names none because the program finds it. */
struct command_line {
    char text[2 * PATH_MAX];
    const char *folder; /* NULL: none */
    bool finds;
};

/* Returns the value of an option in its argument, after `between`, or in the next one; NULL: it is another option. */
static const char *get_value(const char *argument, const char *option, const char *between, const char *next)
{
    size_t n = strlen(option), len = strlen(between);
    if (strncmp(argument, option, n) != 0)
        return NULL;
    if (!argument[n])
        return next;
    return strncmp(argument + n, between, len) == 0 ? argument + n + len : NULL;
}

/* Reads the command line of a process; only flags may stand beside a folder that it finds. */
static void read_command_line(int pid, struct command_line *c)
{
    size_t len = read_file(pid, "cmdline", c->text, sizeof(c->text));
    const char *end = c->text + len;
    c->folder = NULL;
    c->finds = len > 0;
    for (const char *argument = c->text + strlen(c->text) + 1; argument < end; argument += strlen(argument) + 1) {
        const char *next = argument + strlen(argument) + 1 < end ? argument + strlen(argument) + 1 : NULL;
        const char *short_form = get_value(argument, "-c", "", next);
        const char *value = short_form ? short_form : get_value(argument, "--config", "=", next);
        c->folder = value ? value : c->folder;
        c->finds &= argument[0] == '-' && strncmp(argument, "-o", 2) != 0 && strncmp(argument, "--one-shot", 10) != 0;
    }
}

/* ── folders ── */

static bool is_same_folder(const char *a, const char *b)
{
    struct stat one, other;
    return a && stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* A relative path begins in the folder of the process. A daemon has left that, and it may be hidden: then in ours. */
static bool is_folder_of(int pid, const char *folder, const char *own)
{
    char path[PATH_MAX], link[PROC_BYTES], here[2] = "";
    snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
    bool left = readlink(link, here, sizeof(here)) < 0 || (here[0] == '/' && !here[1]);
    if (folder[0] == '/' || left)
        return is_same_folder(folder, own);
    int n = snprintf(path, sizeof(path), "%s/%s", link, folder);
    return n > 0 && n < (int)sizeof(path) && is_same_folder(path, own);
}

/* Whether both are this program, by the names of their processes. */
static bool is_same_program(int pid)
{
    char name[PROC_BYTES], own[PROC_BYTES];
    return read_file(pid, "comm", name, sizeof(name)) && read_file(getpid(), "comm", own, sizeof(own)) &&
           strcmp(name, own) == 0;
}

bool own_server_is(int pid, void *options)
{
    const struct options *o = options;
    struct command_line line;
    if (!o->dir || pid == getpid())
        return false;
    read_command_line(pid, &line);
    if (line.folder)
        return is_folder_of(pid, line.folder, o->dir);
    return line.finds && is_same_program(pid) &&
           (is_folder_of(pid, "conf", o->dir) || is_same_folder(config_find_installed(), o->dir));
}
