// SPDX-License-Identifier: Apache-2.0
/*
 * Reads lines from the terminal: editing, history and completion by libedit. Nothing else includes it.
 */
#ifndef SHELL_EDIT_H
#define SHELL_EDIT_H

#include "link.h"

/* Opens the history. Completion asks the server at `l` for its commands and their arguments. */
void edit_open(struct link *l);
/* Saves the history. */
void edit_close(void);
/* Returns the next line, to be freed; NULL: the end of input. */
char *edit_read(const char *prompt);

#endif
