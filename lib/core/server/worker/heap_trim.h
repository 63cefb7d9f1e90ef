// SPDX-License-Identifier: Apache-2.0
/*
 * Gives memory that the C library keeps after connections have closed back to the system. A connection with many
 * streams, or thousands of them, leave free blocks between those that stay, which the library does not return itself.
 *
 * A second after a connection has closed, a worker looks: if more is free than HEAP_FREE_MIN, and than what is in use,
 * it is returned, once in five seconds at most. It looks once more as soon as that allows: on a busy machine the first
 * look comes in the turn that closes the connections, whose memory is freed at its end. Nothing is done for a request.
 * A program that has the server in it decides about its memory itself.
 */
#ifndef MK_SERVER_HEAP_TRIM_H
#define MK_SERVER_HEAP_TRIM_H

#include "loop/loop.h"

struct mk__heap_trim {
    struct mk_loop *loop; /* NULL: memory is left to the program */
    struct mk_timer timer;
    bool is_armed, is_second;
    uint64_t next_ms; /* of the loop: not before, as memory was returned */
};

void mk__heap_trim_init(struct mk__heap_trim *h, struct mk_loop *loop);
/* A connection has closed. */
void mk__heap_trim_note(struct mk__heap_trim *h);

#endif
