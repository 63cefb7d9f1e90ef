// SPDX-License-Identifier: Apache-2.0
/*
 * Windows of files that were found in the page cache during the last second, so that a file which many clients want is
 * not checked for each of them. A page that the kernel drops within that second makes a worker wait for the disk once;
 * it was used in that second, so that is rare. One table per thread, without a lock.
 */
#ifndef MK_HTTP_RECENT_WINDOWS_H
#define MK_HTTP_RECENT_WINDOWS_H

#include <monkey/base/arena.h>

#include <stdbool.h>
#include <stdint.h>

enum { MK__RECENT_WINDOW_BYTES = 512 * 1024, MK__RECENT_WINDOW_MS = 1000 };

struct mk__recent_windows {
    struct mk__recent_window *windows; /* NULL: no file was checked yet, or there is no memory */
};

/*
 * Checks that the bytes from `from` up to `to`, of one window, are in the page cache, as mk_file_check_cached() does,
 * unless they were found there a moment ago. `file` is the number of the file's version (mk_file_version()), 0: nothing
 * is remembered.
 * Returns 0, -EAGAIN (some are not), -EIO (the file is shorter) or another -errno.
 */
int mk__recent_windows_check(struct mk__recent_windows *w, int fd, uint64_t file, uint64_t from, uint64_t to,
                             uint64_t now_ms);
void mk__recent_windows_release(struct mk__recent_windows *w);

/* Returns the end of the window that has the byte at `at`. */
static inline uint64_t mk__recent_windows_end(uint64_t at)
{
    return at / MK__RECENT_WINDOW_BYTES * MK__RECENT_WINDOW_BYTES + MK__RECENT_WINDOW_BYTES;
}

#endif
