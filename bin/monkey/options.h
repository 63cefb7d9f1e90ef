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
    const char *dir, *root, *backend, *port, *listen, *workers;
    const char *name; /* of the section for --reference, or of the host for --show-config; NULL: all */
    bool daemon, supervise, https, json, list;
};

/* Reads the command line. Returns 0, or EXIT_OPTIONS after a message on stderr. */
int options_read(struct options *o, int argc, char **argv);

/* Prints the options and exit codes on stdout. */
void options_help(void);

/* Returns -l and -p combined as a value of Listen, or NULL if neither was given. The value may be stored in `text`. */
const char *options_listen(const struct options *o, char *text, unsigned size);

#endif
