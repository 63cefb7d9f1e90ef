// SPDX-License-Identifier: Apache-2.0
/*
 * The name of a root in the folder above it, which `Files Notify` watches: a link that is replaced there, or a folder
 * that is moved, makes another folder the root. Links before the last component of the path, and after it, are left to
 * the plugin that serves files, which looks at the path once in a second.
 */
#ifndef CACHE_ROOT_NAME_H
#define CACHE_ROOT_NAME_H

#include "worker.h"

/*
 * Returns whether the root of a lookup is that to which its path leads, as far as the kernel has reported changes
 * until notify_read() was called; true, too, if the name is not watched. False: the lookup ends with EAGAIN.
 */
bool root_name_is_confirmed(const struct cache_lookup *l);

#endif
