// SPDX-License-Identifier: Apache-2.0
/*
 * The command line of the program.
 */
#ifndef MONKEY_OPTIONS_H
#define MONKEY_OPTIONS_H

#include <stdbool.h>

enum { EXIT_OK = 0, EXIT_CONFIG = 1, EXIT_OPTIONS = 2, EXIT_RUN = 3 };

enum action { ACTION_SERVE, ACTION_TEST, ACTION_SHOW, ACTION_REFERENCE, ACTION_VERSION, ACTION_BUILD, ACTION_HELP };

struct options {
    enum action action;
    const char *dir, *root, *port, *listen, *workers;
    bool daemon, supervise, https, json;
};

/* Reads the command line; 0, or EXIT_OPTIONS after a sentence on stderr. */
int options_read(struct options *o, int argc, char **argv);

void options_help(void);

/* What -l and -p say together, as a value of Listen; NULL when neither was given. Lives in `text`. */
const char *options_listen(const struct options *o, char *text, unsigned size);

#endif
