// SPDX-License-Identifier: Apache-2.0
/*
 * Asks the server and shows the answer: as text, or as JSON for programs (--json).
 */
#ifndef SHELL_VIEW_H
#define SHELL_VIEW_H

#include "link.h"
#include "text.h"

struct view_options {
    bool json;
    bool interactive; /* a line of input ends an answer that continues */
    bool full_screen; /* the terminal can be drawn as a whole */
    struct text_style style;
};

/*
 * Asks, and prints the answer on stdout, errors and warnings on stderr. Returns 1 (done), 0 (the command has failed) or
 * -errno (the connection is lost; it was reported).
 */
int view_ask(struct link *l, struct mk_str line, const struct view_options *options);

#endif
