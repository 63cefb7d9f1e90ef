// SPDX-License-Identifier: Apache-2.0
/*
 * What `top` shows, as text: pure functions of two samples.
 */
#ifndef SHELL_TOP_VIEW_H
#define SHELL_TOP_VIEW_H

#include "paths.h"
#include "sample.h"
#include "text.h"

enum { TOP_HISTORY_MAX = 256 };

struct top_view {
    const struct sample *before, *now;
    struct paths *paths; /* are sorted */
    struct text_style style;
    size_t rows;                                             /* of the screen */
    double interval_s;                                       /* between two samples */
    double requests[TOP_HISTORY_MAX], sent[TOP_HISTORY_MAX]; /* in a second, of the samples so far, the newest last */
    unsigned n_history;
    double late_s;         /* how long the server has not answered; 0: it does */
    uint64_t unix_us;      /* the time of day */
    struct sample_rates r; /* of all hosts */
};

/* Compares the samples, and adds the rates to the history. */
void top_view_compare(struct top_view *v);
/* Appends one line, for a file or a pipe. */
void top_view_add_line(const struct top_view *v, struct mk_buf *out);
/* Appends a JSON object and the end of the line, for programs. */
void top_view_add_json(const struct top_view *v, struct mk_buf *out);

#endif
