// SPDX-License-Identifier: Apache-2.0
#ifndef UPSTREAM_CHECK_CONF_H
#define UPSTREAM_CHECK_CONF_H

#include <monkey/conf.h>
#include <monkey/kit/http_client.h>
#include <monkey/kit/status_set.h>

/*
 * The directives of [UPSTREAM] about checks: a second struct for each section, next to struct upstream_conf.
 */
enum { CHECK_HEADERS_MAX = 16, CHECK_BODY_BYTES_MAX = 65536 };

enum check_kind { CHECK_NONE, CHECK_OFF, CHECK_TCP, CHECK_HTTP, CHECK_FASTCGI }; /* none: `Check` is not set */

/* What `Check` says. */
struct check_what {
    uint8_t kind; /* enum check_kind */
    struct mk_str path;
};

/* Lines of a head, each with its CRLF. */
struct check_headers {
    struct mk_str lines[CHECK_HEADERS_MAX];
    uint32_t n;
};

/* The keys of a section; constant once the configuration is loaded. */
struct check_conf {
    struct check_what what;
    struct mk_str method, host, text; /* empty: not set */
    struct check_headers headers;
    struct mk_status_set statuses;
    bool is_tls, tls_verify;
    struct mk_str tls_name, tls_ca;
    int64_t port; /* 0: that of the line `Server` */
    uint32_t timeout_ms, interval_ms;
    int64_t down, up;
};

extern const struct mk_conf_key check_keys[];

/* Tells whether checks use TLS, which FastCGI does not have. */
static inline bool check_conf_has_tls(const struct check_conf *c)
{
    return c->is_tls && c->what.kind != CHECK_FASTCGI;
}

/* Tells whether the servers are checked. */
static inline bool check_conf_is_on(const struct check_conf *c)
{
    return c->what.kind > CHECK_OFF;
}

/* Tells whether a check sends a request. */
static inline bool check_conf_asks(const struct check_conf *c)
{
    return c->what.kind > CHECK_TCP;
}

/* Checks a section (mk_conf_section.check). */
void check_conf_check(const struct mk_conf_check *check, void *section);

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

#endif
