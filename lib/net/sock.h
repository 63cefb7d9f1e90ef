// SPDX-License-Identifier: Apache-2.0
/*
 * The two ways of a connection's bytes, on top of its transport. Outgoing bytes are gathered in a scratch
 * buffer that the worker's connections share; what the kernel does not take is held on the heap until the
 * descriptor is writable again.
 *
 *     scratch ──write──► kernel            (the whole batch of a turn in one call)
 *        └─ EAGAIN ─► held ──write──► kernel
 *
 * Registered edge-triggered, once: `readable` and `writable` remember what the edges said.
 */
#ifndef MK_NET_SOCK_H
#define MK_NET_SOCK_H

#include <monkey/arena.h>
#include <monkey/transport.h>

#include <stdbool.h>

/* Between two connections' turns it is empty. */
struct mk__scratch {
    char *data;
    size_t len, size;
};

struct mk__sock {
    struct mk_io io;
    char *held;
    uint32_t held_len, held_at;
    bool readable, writable;
    bool hung_up; /* the peer sent its FIN: read on until the 0 is seen */
    bool ended;   /* the 0 was seen */
};

/* As transport->read; keeps the flags. */
ssize_t mk__sock_read(struct mk__sock *s, void *to, size_t size);

/*
 * Writes what is held, then `out`. 0: all of it is gone and `out` is empty. MK_AGAIN: the rest is held
 * (drawn on `account`, or by the transport) and `out` is empty. -errno: the connection is of no use any more.
 */
int mk__sock_flush(struct mk__sock *s, struct mk__scratch *out, struct mk_account *account, unsigned flags);

/* Writes bytes that are nobody's to hold: the count, -EAGAIN (also while something is held), -errno. */
ssize_t mk__sock_write(struct mk__sock *s, const void *from, size_t size);

/* Sends up to `size` bytes of a file, nothing being held: the count, 0 = the file ended, -EAGAIN, -errno. */
ssize_t mk__sock_sendfile(struct mk__sock *s, int file_fd, uint64_t offset, size_t size);

/* Bytes that the kernel has taken but the peer has not acknowledged. */
unsigned mk__sock_unsent(const struct mk__sock *s);

/* Closes the transport and frees what is held. */
void mk__sock_close(struct mk__sock *s, struct mk_account *account);

#endif
