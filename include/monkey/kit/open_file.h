// SPDX-License-Identifier: Apache-2.0
/*
 * Files that a plugin has opened itself, for a response. In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_OPEN_FILE_H
#define MONKEY_OPEN_FILE_H

#include "../request.h"

MK_C_BEGIN

/*
 * Fills in descriptor, size, times and version for mk_response_file(); the other members are zeros. The descriptor
 * stays the caller's. May block, though hardly: the inode is in memory. Any thread.
 * Returns 0, -EISDIR, -ENXIO (neither a file nor a folder) or another -errno.
 */
MK_API int mk_open_file_describe(int fd, struct mk_file *ret);

/*
 * Returns the status for a file that cannot be opened, by -errno: 404 (there is none, or it cannot be below its
 * folder), 403 (no rights), 503 (descriptors or memory are short) or 500. Pure.
 */
MK_API int mk_open_file_get_status(int err);

MK_C_END

#endif
