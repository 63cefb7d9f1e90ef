// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a password (prompt.h). Signals that end the program turn the echo on first.
 */
#include "prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
enum { CAUGHT = sizeof(caught) / sizeof(caught[0]) };

static volatile sig_atomic_t received; /* the number of a signal; 0: none */

static void note_signal(int number)
{
    received = number;
}

static void catch_signals(struct sigaction *before)
{
    struct sigaction action = {.sa_handler = note_signal}; /* without SA_RESTART: read(2) returns */
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, &before[i]);
}

static void restore_signals(const struct sigaction *before)
{
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &before[i], NULL);
}

/* Reads a line, byte by byte, so that nothing behind it is taken. Returns its length without the end, or -errno. */
static int read_line(int fd, char *to, size_t size)
{
    size_t len = 0;
    char c;
    for (;;) {
        ssize_t n = read(fd, &c, 1);
        if (n < 0)
            return -errno;
        if (n == 0 && len == 0)
            return -ENODATA;
        if (n == 0 || c == '\n')
            break;
        if (len + 1 >= size)
            return -E2BIG;
        to[len++] = c;
    }
    if (len && to[len - 1] == '\r')
        len--;
    to[len] = '\0';
    return (int)len;
}

static int ask_line(int fd, const char *question, char *to, size_t size)
{
    if (write(fd, question, strlen(question)) < 0)
        return -errno;
    int len = read_line(fd, to, size);
    return write(fd, "\n", 1) < 0 ? -errno : len;
}

static int ask(int fd, char *to, size_t size, bool twice)
{
    char again[1024];
    int len = ask_line(fd, "Password: ", to, size);
    if (len < 0 || !twice)
        return len;
    int len2 = ask_line(fd, "Again: ", again, size < sizeof(again) ? size : sizeof(again));
    if (len2 >= 0 && (len2 != len || memcmp(again, to, (size_t)len) != 0))
        len2 = -EILSEQ;
    explicit_bzero(again, sizeof(again));
    return len2;
}

/* Asks a terminal without echo. */
static int ask_terminal(int fd, char *to, size_t size, bool twice)
{
    struct sigaction before[CAUGHT];
    struct termios mode, quiet;
    if (tcgetattr(fd, &mode) < 0)
        return -errno;
    quiet = mode;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    catch_signals(before);
    int len = tcsetattr(fd, TCSAFLUSH, &quiet) < 0 ? -errno : ask(fd, to, size, twice);
    tcsetattr(fd, TCSAFLUSH, &mode);
    restore_signals(before);
    if (received)
        raise(received);
    return len;
}

int prompt_read(char *to, size_t size, bool from_stdin, bool twice)
{
    if (from_stdin || !isatty(STDIN_FILENO))
        return read_line(STDIN_FILENO, to, size);
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int len = ask_terminal(fd, to, size, twice);
    close(fd);
    return len;
}
