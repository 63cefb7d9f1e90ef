// SPDX-License-Identifier: Apache-2.0
/*
 * What a server keeps for the functions of <monkey/embed.h>, which are linked into libmonkey, but not into the program
 * `monkey`. It is made by the first of them, and lives as long as the server.
 */
#ifndef MK_EMBED_EMBED_H
#define MK_EMBED_EMBED_H

#include <monkey/embed.h>
#include <monkey/kit/routes.h>

#include "server/server.h"

struct mk__embedded {
    struct mk__program program;
    struct mk_arena arena; /* of texts and routes */
    struct mk_routes routes;
    struct mk_loop *loop;        /* that the timer wakes; NULL: mk_server_fd() was not called */
    struct mk_event timer_event; /* a timerfd(2), so that the descriptor of mk_server_fd() is readable in time */
    uint64_t timer_ms;           /* when it expires, as mk_loop_now_ms(); UINT64_MAX: not at all */
    char error[512];
};

/*
 * Begins a call that changes the configuration. Returns 0, -EINVAL (there is no server), -EBUSY (it runs) or -ENOMEM.
 */
int mk__embed_configure(struct mk_server *s, struct mk__embedded **ret);
/* Keeps a sentence about a failed call. Returns `err`. */
int mk__embed_fail(struct mk_server *s, int err, const char *format, ...) MK_PRINTF(3, 4);

/* The plugin that calls the functions of mk_server_handle(). */
extern const struct mk_plugin mk__embed_handle_plugin;
/* loop.c: closes the timer, when the workers are gone. */
void mk__embed_stopped(struct mk__embedded *e);

#endif
