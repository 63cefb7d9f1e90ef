// SPDX-License-Identifier: Apache-2.0
/*
 * Uses the terminal as a screen. The state is static, because signal handlers have no context.
 */
#include "shell.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* the other screen, without cursor and wrapping; and back */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

enum { RESIZE_SIGNALS = 2 };

static const int end_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
static const int resize_signals[RESIZE_SIGNALS] = {SIGWINCH, SIGCONT};
enum { SIGNALS = MK_COUNT_OF(end_signals) + RESIZE_SIGNALS };

static struct {
    struct termios before, raw;
    struct sigaction actions[SIGNALS]; /* as they were: end_signals, then resize_signals */
    sigset_t mask;                     /* as it was */
    volatile sig_atomic_t resized;
} screen;

void screen_measure(size_t *ret_columns, size_t *ret_rows)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
        size = (struct winsize){0};
    *ret_columns = size.ws_col;
    if (ret_rows)
        *ret_rows = size.ws_row;
}

double screen_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Calls only what signal handlers may call. */
static void restore_terminal(void)
{
    ssize_t n = write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
    (void)n;
    tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

/* The action is the default one again (SA_RESETHAND): the signal ends the program when the handler returns. */
static void on_end(int number)
{
    restore_terminal();
    raise(number);
}

static void on_resize(int number)
{
    (void)number;
    screen.resized = 1;
}

/* Resizes are taken in ppoll() only, so that none comes between a look at `resized` and the wait. */
static void catch_signals(void)
{
    unsigned n = 0;
    sigset_t blocked;
    sigemptyset(&blocked);
    for (unsigned i = 0; i < RESIZE_SIGNALS; i++)
        sigaddset(&blocked, resize_signals[i]);
    sigprocmask(SIG_BLOCK, &blocked, &screen.mask);
    for (unsigned i = 0; i < SIGNALS - RESIZE_SIGNALS; i++)
        sigaction(end_signals[i], &(struct sigaction){.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND},
                  &screen.actions[n++]);
    for (unsigned i = 0; i < RESIZE_SIGNALS; i++)
        sigaction(resize_signals[i], &(struct sigaction){.sa_handler = on_resize}, &screen.actions[n++]);
}

static void release_signals(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SIGNALS - RESIZE_SIGNALS; i++)
        sigaction(end_signals[i], &screen.actions[n++], NULL);
    for (unsigned i = 0; i < RESIZE_SIGNALS; i++)
        sigaction(resize_signals[i], &screen.actions[n++], NULL);
    sigprocmask(SIG_SETMASK, &screen.mask, NULL);
}

bool screen_open(void)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &screen.before) < 0)
        return false;
    screen.raw = screen.before;
    screen.raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    screen.raw.c_cc[VMIN] = 1;
    screen.raw.c_cc[VTIME] = 0;
    catch_signals();
    tcsetattr(STDIN_FILENO, TCSANOW, &screen.raw);
    fputs(ENTER, stdout);
    return fflush(stdout) == 0;
}

void screen_close(void)
{
    fflush(stdout);
    restore_terminal();
    release_signals();
}

bool screen_draw(const struct mk_buf *lines)
{
    size_t left = lines->len;
    fputs("\033[H", stdout);
    for (const char *p = lines->data, *end; left && (end = memchr(p, '\n', left));
         left -= (size_t)(end + 1 - p), p = end + 1) {
        fwrite(p, 1, (size_t)(end - p), stdout);
        fputs(left > (size_t)(end + 1 - p) ? "\033[K\r\n" : "\033[K", stdout); /* a last one would scroll */
    }
    fputs("\033[J", stdout);
    return fflush(stdout) == 0;
}

static enum screen_event read_key(void)
{
    char key;
    ssize_t n = read(STDIN_FILENO, &key, 1);
    bool ends = n <= 0 || memchr("qQ\r\n\x03\x04", key, 6);
    return ends ? SCREEN_END : SCREEN_RESIZED;
}

enum screen_event screen_wait(int fd, double until)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    double left = until - screen_time();
    left = left > 0 ? left : 0;
    struct timespec timeout = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
    int n = ppoll(fds, 2, &timeout, &screen.mask);
    if (n < 0 && errno != EINTR)
        return SCREEN_END;
    if (screen.resized) {
        screen.resized = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &screen.raw); /* a shell may have changed it while the program was stopped */
        return SCREEN_RESIZED;
    }
    if (n > 0 && fds[1].revents)
        return SCREEN_INPUT;
    return n > 0 && fds[0].revents ? read_key() : n < 0 ? SCREEN_RESIZED : SCREEN_TIME;
}
