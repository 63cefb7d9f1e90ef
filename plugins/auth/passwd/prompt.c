// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a password. Signals that end the program turn the echo on first.
 */
#include "passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
enum { CAUGHT = MK_COUNT_OF(caught) };

static volatile sig_atomic_t received; /* the number of a signal; 0: none */

static void note_signal(int number)
{
    received = number;
}

/* What the program did with signals before. */
struct prompt_signals {
    struct sigaction actions[CAUGHT];
    sigset_t mask;
};

/* Notes the signals, and blocks them except in wait_input(): one that comes before the wait would be missed. */
static void catch_signals(struct prompt_signals *before)
{
    struct sigaction action = {.sa_handler = note_signal};
    sigset_t set;
    sigemptyset(&action.sa_mask);
    sigemptyset(&set);
    for (int i = 0; i < CAUGHT; i++) {
        sigaction(caught[i], &action, &before->actions[i]);
        sigaddset(&set, caught[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &before->mask);
}

static void restore_signals(const struct prompt_signals *before)
{
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &before->actions[i], NULL);
    sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

/* Waits for input or for one of the signals; `signals` NULL: does not wait. Returns 0 or -errno: -EINTR. */
static int wait_input(int fd, const struct prompt_signals *signals)
{
    struct pollfd input = {.fd = fd, .events = POLLIN};
    return signals && ppoll(&input, 1, NULL, &signals->mask) < 0 ? -errno : 0;
}

/* Reads a line, byte by byte, so that nothing after it is taken. Returns its length without the end, or -errno. */
static int read_line(int fd, const struct prompt_signals *signals, char *to, size_t size)
{
    size_t len = 0;
    char c;
    for (;;) {
        int err = wait_input(fd, signals);
        if (err < 0)
            return err;
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

static int ask_line(int fd, const struct prompt_signals *signals, const char *question, char *to, size_t size)
{
    if (write(fd, question, strlen(question)) < 0)
        return -errno;
    int len = read_line(fd, signals, to, size);
    return write(fd, "\n", 1) < 0 ? -errno : len;
}

static int ask_password(int fd, const struct prompt_signals *signals, char *to, size_t size, bool twice)
{
    char again[1024];
    int len = ask_line(fd, signals, "Password: ", to, size);
    if (len < 0 || !twice)
        return len;
    int len2 = ask_line(fd, signals, "Again: ", again, size < sizeof(again) ? size : sizeof(again));
    if (len2 >= 0 && (len2 != len || memcmp(again, to, (size_t)len) != 0))
        len2 = -EILSEQ;
    explicit_bzero(again, sizeof(again));
    return len2;
}

/* Asks a terminal without echo. */
static int ask_terminal(int fd, char *to, size_t size, bool twice)
{
    struct prompt_signals before;
    struct termios mode, quiet;
    if (tcgetattr(fd, &mode) < 0)
        return -errno;
    quiet = mode;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    catch_signals(&before);
    int len = tcsetattr(fd, TCSAFLUSH, &quiet) < 0 ? -errno : ask_password(fd, &before, to, size, twice);
    tcsetattr(fd, TCSAFLUSH, &mode);
    restore_signals(&before);
    if (received)
        raise(received);
    return len;
}

int prompt_read(char *to, size_t size, bool from_stdin, bool twice)
{
    if (from_stdin || !isatty(STDIN_FILENO))
        return read_line(STDIN_FILENO, NULL, to, size);
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int len = ask_terminal(fd, to, size, twice);
    close(fd);
    return len;
}
