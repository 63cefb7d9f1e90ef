// SPDX-License-Identifier: Apache-2.0
#ifndef UPSTREAM_CHECKS_H
#define UPSTREAM_CHECKS_H

#include "groups.h"

#include <monkey/base/log_limit.h>
#include <monkey/kit/fastcgi.h>
#include <monkey/kit/http_client.h>
#include <monkey/plugin.h>

/*
 * What a response to a check says of its server. Pure.
 */
/* What a response, or its lack, says. */
enum check_result {
    CHECK_PASSED,
    CHECK_FAILED,
    CHECK_NOT_MADE, /* this process lacks resources: nothing is known of the server */
};

/* Appends the reason why a check has failed, or was not made. */
enum check_result check_evaluate(const struct check_conf *conf, const struct mk_http_response *response,
                                 struct mk_buf *reason);

/*
 * The request of a check, as it is sent. Pure.
 */
/* Appends the request of a check of CHECK_HTTP or CHECK_FASTCGI. Errors stay in the buffer. */
void check_request_write(const struct check_conf *conf, struct mk_str host, struct mk_buf *out);

/*
 * The check of a server: a request or a connection now and then, whose results the server keeps. In the thread of the
 * runner.
 *
 *     check_start ─► wait ─► mk_http_client ─► the result ─► server_note_check ─► wait ...
 */
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

/*
 * The checks of a generation: of each server of the groups that are checked. They run once for all workers.
 *
 *     generation_start   checks_add()
 *     host_start         checks_open(): settings of TLS, and mistakes of the configuration
 *     generation_stop    checks_free()
 */
/* Those of a group. */
struct check_group {
    struct check_group *next;
    const struct mk_upstream_group *group;
    const struct check_conf *conf;
    struct check_client client;
    struct check *first; /* NULL: it is not checked */
    uint32_t version;    /* of the servers that have checks */
};

struct checks {
    struct runner_user user;
    struct check_group *first;
    struct mk_worker *worker; /* while they run */
    struct mk_timer timer;    /* looks for servers of names that have come and gone */
    bool is_open;             /* checks_open() was called */
};

void checks_init(struct checks *checks);
/* Adds those of a group, which lasts as long. Returns 0 or -ENOMEM. */
int checks_add(struct checks *checks, const struct mk_upstream_group *group, const struct check_conf *conf);
/*
 * Opens the settings of TLS, and reports mistakes at their keys; the first call does it for all. Returns 0, -EINVAL or
 * -ENOMEM.
 */
int checks_open(struct checks *checks, struct mk_host *host);
/* Frees them; they do not run. */
void checks_free(struct checks *checks);

#endif
