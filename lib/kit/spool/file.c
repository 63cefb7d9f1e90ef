// SPDX-License-Identifier: Apache-2.0
/*
 * The system calls of file.h.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int mk__spool_file_write(int fd, const struct mk__spool_block *first, uint64_t at)
{
    for (const struct mk__spool_block *block = first; block; block = block->next)
        for (uint32_t from = block->at; from < block->end;) {
            ssize_t n = pwrite(fd, block->bytes + from, block->end - from, (off_t)at);
            if (n < 0)
                return -errno;
            from += (uint32_t)n;
            at += (uint64_t)n;
        }
    return 0;
}

int mk__spool_file_read(int fd, struct mk__spool_block *first, uint64_t at, size_t n)
{
    for (struct mk__spool_block *block = first; block && n; block = block->next)
        while (n && block->end < block->size) {
            size_t most = n < block->size - block->end ? n : block->size - block->end;
            ssize_t got = pread(fd, block->bytes + block->end, most, (off_t)at);
            if (got <= 0)
                return got < 0 ? -errno : -EIO;
            block->end += (uint32_t)got;
            at += (uint64_t)got;
            n -= (size_t)got;
        }
    return n ? -EIO : 0;
}

int mk__spool_file_punch(int fd, uint64_t from, uint64_t to)
{
    int result = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
    return result < 0 ? -errno : 0;
}
