// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a file part that is not in the page cache, in a disk thread.
 */
#ifndef MK_HTTP_FILE_READ_H
#define MK_HTTP_FILE_READ_H

#include "http/request.h"

#include <sys/uio.h>

struct mk__file_read_job;

/*
 * Reads from the page cache. Returns the number of bytes, 0 at the end of the file, -EAGAIN if the bytes are not in the
 * page cache, or another -errno. With `is_cached` they are known to be there, and -EAGAIN is not returned.
 */
ssize_t mk__file_read_cached(int fd, char *to, size_t size, uint64_t at, bool is_cached);
/* The same into several pieces of memory. */
ssize_t mk__file_read_cached_pieces(int fd, const struct iovec *to, int pieces, uint64_t at, bool is_cached);

/*
 * Starts a job that reads the next `want` bytes of the exchange's first part, a file, and then wakes the exchange. With
 * `keep` the bytes replace the file part, which must have exactly that many left; without it they only get into the
 * page cache. If the file turns out to be shorter, the response fails. Returns 0, -ENOMEM or the error of
 * mk_job_submit().
 */
int mk__file_read_start(struct mk_request *req, size_t want, bool keep);

/* Detaches a job from its exchange, which ends; the job frees itself and closes the file. */
void mk__file_read_cancel(struct mk__file_read_job *job);

#endif
