// SPDX-License-Identifier: Apache-2.0
/*
 * Names of files in sites/ that are no hosts: copies that editors and package managers leave. Pure; builds for small
 * devices leave it out.
 */
#ifndef MK_SERVER_SKIPPED_FILES_H
#define MK_SERVER_SKIPPED_FILES_H

/* Returns what the file is by its name, such as "a backup"; NULL: it is a host's. */
const char *mk__skipped_files_describe(const char *path);

#endif
