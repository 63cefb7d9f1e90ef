// SPDX-License-Identifier: Apache-2.0
/*
 * Reading a file part that is not in the page cache, on a disk thread.
 */
#ifndef MK_HTTP_FILE_READ_H
#define MK_HTTP_FILE_READ_H

#include "http/request.h"

struct mk__file_read_job;

/*
 * Reads what is in the page cache: the count, -EAGAIN when something is missing there. Of what is known to be
 * there (`is_cached`) nothing ever is.
 */
ssize_t mk__file_read_cached(int fd, char *to, size_t size, uint64_t at, bool is_cached);

/*
 * Reads the next `want` bytes of the exchange's first part, a file. With `keep` they replace the file
 * part (which must have just so many bytes left); without it they only end up in the page cache. The carrier is woken
 * afterwards; a file that turned out shorter makes the response fail. 0 or -errno.
 */
int mk__file_read_start(struct mk_request *req, size_t want, bool keep);

/* The exchange ends while its bytes are being read. */
void mk__file_read_cancel(struct mk__file_read_job *load);

#endif
