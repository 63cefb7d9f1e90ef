// SPDX-License-Identifier: Apache-2.0
/*
 * What the program prints in place of serving: its version, the manual, a configuration, and problems.
 */
#ifndef MONKEY_PRINT_H
#define MONKEY_PRINT_H

#include <monkey/monkey.h>

#include <stdio.h>

#include "options.h"

/* All functions return the exit code. */

/* Prints a text, and releases it. */
int print_buffer(FILE *to, struct mk_buf *text);
/* Prints the server's problems on stderr. Returns `code`. */
int print_problems(const struct mk_server *server, int code);
/* Prints the version, the build or the manual: one section of it if `o` names one, "TLS" or "[TLS]" in any case. */
int print_info(const struct options *o);
/* Prints the effective configuration of the server, or of one host; `host` may be NULL. */
int print_config(const struct mk_server *server, const char *host);

#endif
