// SPDX-License-Identifier: Apache-2.0
/*
 * The queue of a response's parts, read as bytes: by the first filter, and by protocols that frame each piece.
 * Builds for small devices have neither.
 */
#ifndef MK_HTTP_PARTS_H
#define MK_HTTP_PARTS_H

#include "http/request.h"

struct mk__parts_reader {
    struct mk_request *req;
    bool length_known;
    uint64_t length; /* announced */
    uint64_t read;
};

/*
 * The next bytes of the queue, at most `size`, of one part: the count; 0 for the end of a response that has been ended;
 * -EAGAIN: there are none yet, the exchange is woken (a handler, a disk: req->file_read); another -errno: the response
 * cannot be completed.
 */
ssize_t mk__parts_read(struct mk__parts_reader *q, char *to, size_t size);

#endif
