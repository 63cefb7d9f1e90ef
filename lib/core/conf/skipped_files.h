// SPDX-License-Identifier: Apache-2.0
/*
 * Names of files that are not read where a pattern finds them, in sites/ and by @INCLUDE: copies that editors and
 * package managers leave. Pure.
 */
#ifndef MK_CONF_SKIPPED_FILES_H
#define MK_CONF_SKIPPED_FILES_H

#include <monkey/status.h>

/* Returns what the file is by its name, such as "a backup"; NULL: it is read. */
MK_COLD const char *mk__skipped_files_describe(const char *path);

#endif
