// SPDX-License-Identifier: Apache-2.0
/*
 * The check of a server: a request or a connection now and then, whose results the server keeps (servers.h). In the
 * thread of the runner (runner.h).
 *
 *     check_start ─► wait ─► mk_http_client ─► the result ─► server_note_check ─► wait ...
 */
#ifndef UPSTREAM_CHECK_H
#define UPSTREAM_CHECK_H

#include "check_conf.h"
#include "groups.h"

#include <monkey/fastcgi.h>
#include <monkey/log_limit.h>

/* How the checks of a group connect. */
struct check_client {
    const struct mk_transport *transport; /* NULL: plain sockets */
    struct mk_transport_client *settings;
};

struct check {
    struct check *next; /* of its group */
    const struct check_conf *conf;
    const struct check_client *client;
    struct server *server; /* held */
    const struct mk_dial_target *target;
    struct mk_str request; /* empty: a connection is enough */
    uint64_t id;
    struct mk_arena arena;    /* of target and request */
    struct mk_worker *worker; /* NULL: it is not running */
    struct mk_timer timer;
    struct mk_http_client exchange;
    struct mk_fastcgi_response fastcgi; /* of the exchange */
    struct mk_log_limit_row limit;      /* of lines about checks that this process cannot make */
};

/* Makes the check of a server; `conf` is one with a check. With CheckPort the server has a port. Returns 0 or -ENOMEM.
 */
int check_make(const struct check_conf *conf, const struct check_client *client, struct server *server,
               struct check **ret);
void check_free(struct check *check);

/* Start and stop it. `worker` is that of the runner. */
void check_start(struct check *check, struct mk_worker *worker);
void check_stop(struct check *check);

#endif
