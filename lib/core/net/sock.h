// SPDX-License-Identifier: Apache-2.0
/*
 * The input and output of a connection, on top of its transport. Output is gathered in a scratch buffer that all
 * connections of a worker share; bytes that the kernel does not accept are held on the heap until the descriptor is
 * writable again.
 *
 *     scratch ──write──► kernel            (all output of a turn in one call)
 *        └─ EAGAIN ─► held ──write──► kernel
 *
 * The descriptor is registered once, edge-triggered: `readable` and `writable` keep the state that the edges reported.
 */
#ifndef MK_NET_SOCK_H
#define MK_NET_SOCK_H

#include <monkey/base/arena.h>
#include <monkey/transport.h>

#include <stdbool.h>

/* The shared output buffer of a worker; empty between the turns of two connections. */
struct mk__scratch {
    char *data;
    size_t len, size;
};

/* What may still be read. It only moves forward. */
enum mk__sock_input {
    MK__SOCK_INPUT_OPEN,
    MK__SOCK_INPUT_HUNG_UP, /* the peer has sent its FIN: read until 0 is returned */
    MK__SOCK_INPUT_ENDED,   /* 0 was returned */
};

/* Whether the kernel keeps back a segment that is not full. */
enum mk__sock_cork {
    MK__SOCK_CORK_UNKNOWN, /* not asked for yet */
    MK__SOCK_CORK_NEVER,   /* of no use for this socket */
    MK__SOCK_CORK_OFF,
    MK__SOCK_CORK_ON,
};

struct mk__sock {
    struct mk_io io;
    char *held;
    uint32_t held_len, held_at;
    bool readable, writable;
    uint8_t input; /* enum mk__sock_input */
    uint8_t cork;  /* enum mk__sock_cork */
};

/* Tells whether all input was read. */
static inline bool mk__sock_has_ended(const struct mk__sock *s)
{
    return s->input == MK__SOCK_INPUT_ENDED;
}

/*
 * Reads as transport->read() does, and updates `readable` and `input`.
 * Returns the number of bytes, 0 (the peer has ended its side), -EAGAIN or another -errno.
 */
ssize_t mk__sock_read(struct mk__sock *s, void *to, size_t size);

/*
 * Writes the held bytes, then `out`, which is empty afterwards. `flags`: MK_IO_MORE or 0.
 * Returns 0 (everything was written), MK_AGAIN (the rest is held, in memory of `account` or by the transport), or
 * -errno (the connection is unusable).
 */
int mk__sock_flush(struct mk__sock *s, struct mk__scratch *out, struct mk_account *account, unsigned flags);

/*
 * Writes bytes without holding any.
 * Returns the number of bytes, -EAGAIN (also while bytes are held) or another -errno.
 */
ssize_t mk__sock_write(struct mk__sock *s, const void *from, size_t size);

/*
 * Sends up to `size` bytes of a file; no bytes may be held.
 * Returns the number of bytes, 0 (the file has ended), -EAGAIN or another -errno.
 */
ssize_t mk__sock_sendfile(struct mk__sock *s, int file_fd, uint64_t offset, size_t size);

/*
 * Sets TCP_CORK, unless it is of no use for this socket: the kernel keeps back a segment that is not full until the
 * cork is removed, for 200 ms at most. Acknowledgements that arrive meanwhile send no short segments.
 */
void mk__sock_set_cork(struct mk__sock *s, bool on);

/* Has mk__sock_close() reset the TCP connection, so that the peer sees an error and no end. */
void mk__sock_reset(struct mk__sock *s);

/* Returns the number of bytes that the kernel has accepted and the peer has not acknowledged. */
unsigned mk__sock_unsent(const struct mk__sock *s);

/* Closes the transport and frees the held bytes. */
void mk__sock_close(struct mk__sock *s, struct mk_account *account);

#endif
