// SPDX-License-Identifier: Apache-2.0
/*
 * The terminal as a screen that is drawn as a whole: keys come one by one, the cursor is hidden, and the text before is
 * there again at the end. A signal that ends the program restores the terminal first.
 */
#ifndef SHELL_SCREEN_H
#define SHELL_SCREEN_H

#include <monkey/buf.h>

#include <stdbool.h>

/* Stores the size of the terminal at stdout, 0 if it is unknown. `ret_rows` may be NULL. */
void screen_measure(size_t *ret_columns, size_t *ret_rows);

/* Begins to use stdin and stdout as a screen. Returns false if they are no terminal. */
bool screen_open(void);
/* Restores the terminal. */
void screen_close(void);
/* Draws lines, which end with "\n" and are not wider than the screen. Returns false if that fails. */
bool screen_draw(const struct mk_buf *lines);

enum screen_event {
    SCREEN_TIME,    /* the time has come */
    SCREEN_INPUT,   /* there is something to be read from the descriptor */
    SCREEN_RESIZED, /* draw again */
    SCREEN_END,     /* the user wants to leave: q, Enter, Control-C, Control-D, or the terminal is gone */
};

/* Waits until a time of CLOCK_MONOTONIC in seconds, a key, another size or input at `fd` (-1: none). */
enum screen_event screen_wait(int fd, double until);
/* Returns the time of CLOCK_MONOTONIC in seconds. */
double screen_time(void);

#endif
