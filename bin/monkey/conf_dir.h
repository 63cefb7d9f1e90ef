// SPDX-License-Identifier: Apache-2.0
/*
 * The directory of the configuration when the command line names none.
 */
#ifndef MONKEY_CONF_DIR_H
#define MONKEY_CONF_DIR_H

#include <stdbool.h>

/* Returns the directory of the installed configuration, whether it exists or not. */
const char *conf_dir_installed(void);

/* Returns whether `dir` has a monkey.conf. An error other than ENOENT counts as yes: reading it reports the reason. */
bool conf_dir_has_config(const char *dir);

/* Prints on stderr that there is no configuration, and the two ways to start without it. */
void conf_dir_report_missing(void);

#endif
