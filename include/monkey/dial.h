// SPDX-License-Identifier: Apache-2.0
/*
 * Outgoing connections: to a TCP port of an address or a name, or to a Unix socket. Nothing here blocks, names
 * are looked up beside the loop, and each wait has an end.
 *
 *     configuration   mk_dial_target_parse ─► target            (once, in a generation's arena)
 *     request         mk_dial_start ─► name ─► addresses ─► callback(descriptor or -errno)
 *                          └────────── mk_dial_cancel: no callback
 *
 * Several addresses of a name are tried as RFC 8305 ("happy eyeballs") recommends: families take turns, the next
 * address has its chance when one fails or after 250 ms, at most two are tried at a time, and the first that
 * connects wins. When there are more, the time is divided: who has had its part makes room.
 *
 * Everything is called in the thread of the loop, and calls back there.
 */
#ifndef MONKEY_DIAL_H
#define MONKEY_DIAL_H

#include "arena.h"
#include "loop.h"
#include "str.h"

struct mk__addr;
struct mk__resolver_entry;

enum {
    MK_DIAL_TIMEOUT_MS = 10000, /* where none is given */
    MK_DIAL_ADDRESSES_MAX = 8,  /* of a name; further ones are not tried */
    MK_DIAL_PORT_REQUIRED = -1, /* mk_dial_target_parse(): no default */
};

/* ── where to ── */

/* Constant once it is parsed: any number of dials, in any thread, may use it at the same time. */
struct mk_dial_target {
    struct mk_str text;          /* as it was written, for messages */
    struct mk_str host;          /* the name, the address without brackets, or the path */
    uint16_t port;               /* 0 for a Unix socket */
    const struct mk__addr *addr; /* NULL: a name, which has to be looked up */
};

/*
 * Reads `name:port`, `192.0.2.1:port`, `[2001:db8::1]:port` or `unix:/path`. Where the text has no port,
 * `default_port` is taken, unless it is MK_DIAL_PORT_REQUIRED. A default of 0 is for addresses of our own
 * (mk_dial_options.local). A name has at most 253 bytes of letters, digits, `-`, `_` and `.`; it is not looked up
 * yet, so that a configuration loads while name servers are away.
 *
 * The target lives in `arena`. 0; -EINVAL or -ENOMEM with a phrase for people in `*ret_error`.
 */
MK_API int mk_dial_target_parse(struct mk_arena *arena, struct mk_str text, int default_port,
                                const struct mk_dial_target **ret_target, const char **ret_error);

/* ── the connection ── */

struct mk_dial;

/*
 * `fd` is connected, or -errno. The descriptor (stream, non-blocking, close-on-exec, TCP_NODELAY, not watched
 * by the loop) is yours from here on. The dial is over: its memory may be freed or used for the next one.
 *
 * -ECONNREFUSED, -ENOENT (no such Unix socket), -EHOSTUNREACH ...: of the address that failed last. -ETIMEDOUT: the
 * time is over. -ENXIO: the name has no address. -EAGAIN: no name server answers. -EBUSY: too many names are being
 * looked up. -EMFILE, -ENOMEM ...: means of our own. mk_dial_error() has words for them.
 */
typedef void (*mk_dial_fn)(struct mk_dial *dial, int fd);

struct mk_dial_options {
    uint32_t timeout_ms; /* for all of it: the name and every address; 0: MK_DIAL_TIMEOUT_MS */
    /*
     * TCP Fast Open (RFC 7413): to a server that was met before, the callback may come before the server has heard
     * of us. The first write then carries its bytes in the SYN, and may be the one that fails with -ECONNREFUSED.
     * Only for first bytes that are at hand and that the server may get twice. Where the kernel or the server
     * cannot do it, this is a usual connection.
     */
    bool fast_open;
    /*
     * Connect from this address, NULL: the kernel chooses. An address, not a name, with port 0; only addresses of
     * its family can be reached (-EAFNOSUPPORT). It must live as long as the dial. Unix sockets ignore it.
     */
    const struct mk_dial_target *local;
};

struct mk_dial_attempt {
    struct mk_event event; /* fd < 0: free */
    struct mk_dial *dial;
};

/*
 * In the caller's storage, where it must stay until the callback or mk_dial_cancel(). All zeros is a dial that is
 * not under way. The fields are the library's.
 */
struct mk_dial {
    struct mk_loop *loop; /* NULL: not under way */
    const struct mk_dial_target *target;
    mk_dial_fn fn;
    struct mk_dial_options options;
    uint64_t deadline_ms;
    struct mk_timer timer;           /* the next step or the end */
    struct mk_task task;             /* the begin; waits for the name's addresses, too */
    struct mk__resolver_entry *name; /* held */
    const struct mk__addr *addrs;
    uint8_t n, at; /* of the addresses; the next one */
    uint8_t older; /* of the attempts */
    int err;       /* of the last attempt that failed */
    struct mk_dial_attempt attempts[2];
};

/*
 * Calls `fn` exactly once, later: never from within this call, and not after mk_dial_cancel(). All that goes wrong
 * is told to `fn`, so that there is one place for it. `dial` must not be under way. `target` must live as long;
 * `options` (NULL: all zeros) are copied.
 */
MK_API void mk_dial_start(struct mk_dial *dial, struct mk_loop *loop, const struct mk_dial_target *target,
                          const struct mk_dial_options *options, mk_dial_fn fn);

/*
 * Gives up: descriptors are closed, no callback comes, and the memory of `dial` may be freed at once, even while its
 * name is being looked up. Does nothing when the dial is over, or never began. Whoever starts a dial for a
 * request cancels it with the request; none may be under way when its loop ends.
 */
MK_API void mk_dial_cancel(struct mk_dial *dial);

/* What a negative `fd` of the callback means, as a phrase for people; valid until the thread's next call. */
MK_API const char *mk_dial_error(int err);

#endif
