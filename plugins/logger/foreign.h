// SPDX-License-Identifier: Apache-2.0
/*
 * Directives of Apache's log formats, and the variables to write here. Pure functions.
 */
#ifndef LOGGER_FOREIGN_H
#define LOGGER_FOREIGN_H

#include <monkey/str.h>

/* Returns the variable for the Apache directive that `s` begins with, such as "%>s"; NULL: it begins with none. */
const char *foreign_find_directive(struct mk_str s);

#endif
