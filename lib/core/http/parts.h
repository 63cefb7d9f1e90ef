// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the queue of parts of a response as bytes. Used by the first filter, and by HTTP/2 for its DATA frames.
 */
#ifndef MK_HTTP_PARTS_H
#define MK_HTTP_PARTS_H

#include "http/request.h"

struct mk__parts_reader {
    struct mk_request *req;
    bool length_known;
    uint64_t length; /* of the body, if length_known */
    uint64_t read;   /* so far */
};

/*
 * Reads up to `size` bytes from the first part of the queue. Returns the number of bytes; 0 at the end of the response;
 * -EAGAIN if it has to wait for the handler or, with req->file_read, for the disk: the exchange is woken then; another
 * -errno if the response cannot be completed: -EPIPE, -EIO (the file has shrunk), -EMSGSIZE (more than its length).
 */
ssize_t mk__parts_read(struct mk__parts_reader *q, char *to, size_t size);
/*
 * Reads the next bytes of the first part into several pieces of memory, without taking them from the queue. Returns how
 * many; 0: the part is no file, or the disk would have to be waited for.
 */
size_t mk__parts_peek(const struct mk__parts_reader *q, const struct iovec *to, int pieces);
/* Takes bytes from the queue that mk__parts_peek() has read. */
void mk__parts_skip(struct mk__parts_reader *q, size_t bytes);

#endif
