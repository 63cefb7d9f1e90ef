// SPDX-License-Identifier: Apache-2.0
/*
 * The command line of mk_passwd.
 */
#ifndef PASSWD_OPTIONS_H
#define PASSWD_OPTIONS_H

#include "../scheme.h"

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_WRONG = 3 };

enum action { ACTION_SET, ACTION_CREATE, ACTION_DELETE, ACTION_VERIFY };

struct options {
    enum action action;
    const char *path;
    struct mk_str user;
    enum scheme scheme;
    unsigned cost; /* 0: the default */
    bool from_stdin;
};

/* Reads the command line. Returns true, or false with the code to exit with: the help, or a message was printed. */
bool options_read(struct options *o, int argc, char **argv, int *ret_code);

#endif
