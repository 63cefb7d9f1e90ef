// SPDX-License-Identifier: Apache-2.0
/*
 * Files of plugins that are not loaded.
 */
#ifndef MK_SERVER_UNREAD_FILES_H
#define MK_SERVER_UNREAD_FILES_H

#include "server/generation/generation.h"

/*
 * Warns of files `plugins/NAME/NAME.conf` below `dir` that have sections and are not read, because no plugin of that
 * name is loaded: the rules in them have no effect. Without plugins.load, reports those that cannot be read.
 */
MK_COLD void mk__unread_files_warn(struct mk_generation *g, const char *dir);

#endif
