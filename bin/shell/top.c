// SPDX-License-Identifier: Apache-2.0
#include "shell.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 80, ROWS_DEFAULT = 24, COLUMNS_MAX = 400, OUT_BYTES_MAX = 1024 * 1024, SAMPLES = 3 };

/* After so many seconds without an answer the screen tells it, and a key ends. A worker may take two. */
static const double late_s = 3;

struct top {
    struct link *link;
    const struct view_options *options;
    double seconds, heard_at;       /* heard_at: when the server was asked, or sent something */
    bool screen, ends;              /* it ends as soon as the answer under way is complete */
    struct sample samples[SAMPLES]; /* two are shown while the third is taken */
    unsigned n_samples;
    struct paths paths;
    struct top_view view;
};

static uint64_t get_unix_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void measure_screen(struct top *t)
{
    size_t *columns = &t->view.style.columns;
    screen_measure(columns, &t->view.rows);
    *columns = *columns == 0 ? COLUMNS_DEFAULT : *columns > COLUMNS_MAX ? COLUMNS_MAX : *columns;
    t->view.rows = t->view.rows ? t->view.rows : ROWS_DEFAULT;
}

/* Returns false if nothing can be written. */
static bool show_frame(struct top *t)
{
    struct mk_buf out;
    mk_buf_init(&out, OUT_BYTES_MAX);
    t->view.unix_us = get_unix_us();
    if (t->screen) {
        measure_screen(t);
        top_screen_draw(&t->view, &out);
    } else if (t->options->json) {
        top_view_add_json(&t->view, &out);
    } else {
        top_view_add_line(&t->view, &out);
    }
    bool good = t->screen ? screen_draw(&out) : fwrite(out.data, 1, out.len, stdout) == out.len && fflush(stdout) == 0;
    mk_buf_release(&out);
    return good;
}

/* Waits for an answer while the screen lives on: struct link's `wait`. */
static int wait_answer(struct link *l, void *ctx)
{
    struct top *t = ctx;
    for (;;) {
        enum screen_event event = screen_wait(l->fd, screen_time() + 1);
        t->ends |= event == SCREEN_END;
        double late = screen_time() - t->heard_at;
        t->heard_at = event == SCREEN_INPUT ? screen_time() : t->heard_at;
        if (event == SCREEN_INPUT)
            return 0;
        t->view.late_s = late < late_s ? 0 : late;
        if (t->ends && late >= late_s)
            return -ETIMEDOUT;
        if (event == SCREEN_RESIZED || late >= late_s)
            show_frame(t);
    }
}

static int take_sample(struct top *t)
{
    struct sample *next = &t->samples[t->n_samples % SAMPLES];
    t->heard_at = screen_time();
    int result = sample_take(t->link, next);
    if (result < 0)
        return result;
    t->view.late_s = 0;
    t->view.before = t->n_samples++ ? t->view.now : next;
    t->view.now = next;
    top_view_compare(&t->view);
    return result;
}

/* Waits without a screen. On a terminal that knows no escape sequences a line of input ends it. */
static void wait_line(struct top *t, double until)
{
    char text[256];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    bool listens = t->options->interactive && t->options->style.terminal;
    int n = poll(&input, listens ? 1 : 0, (int)((until - screen_time()) * 1000) + 1);
    t->ends |= n > 0 && read(STDIN_FILENO, text, sizeof(text)) >= 0;
}

/* Waits until `until`, and samples paths meanwhile. Returns 1, 0: it is to end, or -errno. */
static int wait_refresh(struct top *t, double until)
{
    for (double now = screen_time(); now < until && !t->ends; now = screen_time()) {
        if (!t->screen) {
            wait_line(t, until);
            continue;
        }
        double next = t->paths.next_at < until ? t->paths.next_at : until;
        enum screen_event event = screen_wait(-1, next);
        t->heard_at = screen_time();
        int result = event == SCREEN_TIME && next < until ? paths_sample(t->link, &t->paths) : 1;
        if (result < 0)
            return result;
        t->ends |= event == SCREEN_END || (event == SCREEN_RESIZED && !show_frame(t));
    }
    return !t->ends;
}

static int run_top(struct top *t)
{
    int result = take_sample(t);
    if (result >= 0 && t->screen)
        t->ends |= !show_frame(t);
    while (result >= 0 && (result = wait_refresh(t, t->view.now->at + t->seconds)) > 0) {
        result = take_sample(t);
        if (result >= 0 && !t->ends)
            t->ends |= !show_frame(t);
    }
    return result;
}

int top_run(struct link *l, double seconds, const struct view_options *options)
{
    static struct top t; /* too large for a stack */
    memset(&t, 0, sizeof(t));
    t.link = l;
    t.options = options;
    t.seconds = seconds;
    t.view = (struct top_view){.before = &t.samples[0],
                               .now = &t.samples[0],
                               .paths = &t.paths,
                               .style = options->style,
                               .interval_s = seconds};
    t.screen = !options->json && options->full_screen && screen_open();
    if (t.screen) {
        l->wait = wait_answer;
        l->wait_ctx = &t;
    }
    int result = run_top(&t);
    if (t.screen)
        screen_close();
    l->wait = NULL;
    if (result < 0)
        fprintf(stderr, "monkey shell: %s\n",
                result == -ETIMEDOUT ? "the server does not answer" : "the connection to the server is lost");
    return result < 0 ? result : 1;
}
