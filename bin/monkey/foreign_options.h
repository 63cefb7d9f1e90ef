// SPDX-License-Identifier: Apache-2.0
/*
 * Commands and options of other servers' programs, and what is typed here in their place.
 */
#ifndef MONKEY_FOREIGN_OPTIONS_H
#define MONKEY_FOREIGN_OPTIONS_H

/* Returns a phrase for a command such as "reload", or an option such as "-s"; NULL: it is in no row. */
const char *foreign_options_find(const char *word);

#endif
