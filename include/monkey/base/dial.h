// SPDX-License-Identifier: Apache-2.0
/*
 * Outgoing connections: to a TCP port of an address or a name, or to a Unix socket. Nothing here blocks: names are
 * looked up by other threads, and each wait has a timeout.
 *
 *     configuration   mk_dial_target_parse ─► target            (once, in a generation's arena)
 *     request         mk_dial_start ─► name ─► addresses ─► callback(descriptor or -errno)
 *                          └────────── mk_dial_cancel: no callback
 *
 * Several addresses of a name are tried as RFC 8305 ("happy eyeballs") recommends: IPv6 and IPv4 alternate, the next
 * address is tried when one fails or after 250 ms, at most two attempts run at a time, and the first that connects
 * wins. When more addresses are left, the remaining time is divided among them, and the older attempt is given up for
 * the next.
 *
 * All functions must be called in the thread of the loop, and callbacks come in that thread.
 */
#ifndef MONKEY_DIAL_H
#define MONKEY_DIAL_H

#include <errno.h>
#include <stdbool.h>

#include "../loop.h"
#include "arena.h"
#include "str.h"

MK_C_BEGIN

enum {
    MK_DIAL_TIMEOUT_MS = 10000, /* if the options give none */
    MK_DIAL_ADDRESSES_MAX = 8,  /* addresses of a name; further ones are not tried */
    MK_DIAL_PORT_REQUIRED = -1, /* for mk_dial_target_parse(): there is no default port */
};

/* ── the target ── */

/* Constant once it is parsed: any number of dials may use it at the same time, in any thread. */
struct mk_dial_target {
    struct mk_str text; /* as it was written; for messages */
    struct mk_str host; /* the name, the address without brackets, or the path */
    uint16_t port;      /* 0 for a Unix socket */
    const void *addr;   /* private to the library; NULL: a name, which is looked up for each dial */
};

/*
 * Reads `name:port`, `192.0.2.1:port`, `[2001:db8::1]:port` or `unix:/path`. If the text has no port, it gets
 * `default_port`, unless that is MK_DIAL_PORT_REQUIRED. A default of 0 is for local addresses (mk_dial_options.local).
 * A name has at most 253 bytes of letters, digits, `-`, `_` and `.`. It is not looked up yet, so that a configuration
 * loads while name servers are unreachable. The target lives in `arena`.
 *
 * Returns 0, or -EINVAL or -ENOMEM with a phrase for people in `*ret_error`.
 */
MK_API int mk_dial_target_parse(struct mk_arena *arena, struct mk_str text, int default_port,
                                const struct mk_dial_target **ret_target, const char **ret_error);

struct mk_generation;
/*
 * Returns true if connections to a target come to a Listen line of this server. A name is looked up in /etc/hosts only.
 * May ask the file system; from host_start on.
 */
MK_API bool mk_generation_listens(const struct mk_generation *g, const struct mk_dial_target *target);

/* ── the connection ── */

struct mk_dial;

/*
 * The result of a dial: `fd` is connected, or a negative error. The descriptor (stream, non-blocking, close-on-exec,
 * TCP_NODELAY, not in the loop) belongs to the callback. The dial is over: its memory may be freed or used again.
 *
 *   - -ECONNREFUSED, -ENOENT (no such Unix socket), -EHOSTUNREACH ...: the error of the address that failed last.
 *   - -ETIMEDOUT: the time is over. -ENXIO: the name has no address. -EAGAIN: no name server answers.
 *   - -EBUSY: too many names are being looked up. -EMFILE, -ENOMEM ...: this process lacks resources.
 *
 * mk_dial_error() describes them.
 */
typedef void (*mk_dial_fn)(struct mk_dial *dial, int fd);

struct mk_dial_options {
    uint32_t timeout_ms; /* for the lookup and all addresses together; 0: MK_DIAL_TIMEOUT_MS */
    /*
     * TCP Fast Open (RFC 7413): for a server that this host has connected to before, the callback may come before the
     * server has been contacted. The first write then carries its bytes in the SYN, and may fail with -ECONNREFUSED.
     * Use it only if the first bytes are ready and the server may receive them twice. If the kernel or the server does
     * not support it, this is a usual connection.
     */
    bool fast_open;
    /*
     * The local address to connect from; NULL: the kernel chooses. An address, not a name, with port 0. Addresses of
     * the other family cannot be reached then (-EAFNOSUPPORT). It must live as long as the dial. Unix sockets ignore
     * it.
     */
    const struct mk_dial_target *local;
};

struct mk_dial_attempt {
    struct mk_event event; /* fd < 0: not in use */
    struct mk_dial *dial;
};

/*
 * A dial, in the caller's storage, where it must stay until the callback or mk_dial_cancel(). All zeros: not in
 * progress. The fields are private to the library.
 */
struct mk_dial {
    struct mk_loop *loop; /* NULL: not in progress */
    const struct mk_dial_target *target;
    mk_dial_fn fn;
    struct mk_dial_options options;
    uint64_t deadline_ms;
    struct mk_timer timer; /* the next attempt or the timeout */
    struct mk_task task;   /* starts the dial, and continues it when the name is resolved */
    void *name;            /* the resolver's entry, held until the dial ends */
    const void *addrs;     /* the addresses of the target or of the name */
    uint8_t n, at;         /* number of addresses; index of the next one */
    uint8_t older;         /* index of the older attempt */
    int err;               /* the error of the last attempt that failed */
    struct mk_dial_attempt attempts[2];
};

/*
 * Starts a dial. Calls `fn` exactly once with the result, errors included: never from within this call, and not after
 * mk_dial_cancel(). `dial` must not be in progress. `target` must live as long as the dial; `options` (NULL: all zeros)
 * are copied.
 */
MK_API void mk_dial_start(struct mk_dial *dial, struct mk_loop *loop, const struct mk_dial_target *target,
                          const struct mk_dial_options *options, mk_dial_fn fn);

/*
 * Cancels a dial: closes its descriptors and prevents the callback. The memory of `dial` may be freed at once, even
 * while its name is being looked up. Does nothing if the dial is over or was never started. A dial that serves a
 * request must be cancelled with it, and all dials before their loop ends, or once it is closed and still in memory.
 */
MK_API void mk_dial_cancel(struct mk_dial *dial);

/* Returns a phrase for people for a negative `fd` of the callback; valid until the next call of this thread. */
MK_API const char *mk_dial_error(int err);

/* Tells whether such an error is one of this process, its machine or its name servers, and not of the other server. */
static inline bool mk_dial_error_is_own(int err)
{
    switch (err) {
    case -ENOMEM:
    case -EMFILE:
    case -ENFILE:
    case -ENOBUFS:
    case -EBUSY:
    case -EAGAIN:
    case -EADDRNOTAVAIL:
        return true;
    default:
        return false;
    }
}

MK_C_END

#endif
