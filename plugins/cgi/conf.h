// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [CGI].
 */
#ifndef CGI_CONF_H
#define CGI_CONF_H

#include <monkey/kit/cgi.h>
#include <monkey/kit/child.h>
#include <monkey/kit/gateway.h>

enum { CGI_FIELDS_MAX = 128, CGI_INTERPRETER_ARGS_MAX = 8 };

/* A program that runs scripts with an extension. */
struct cgi_interpreter {
    struct cgi_interpreter *next;
    struct mk_str extension; /* ".py" */
    struct mk_str path;      /* absolute, with a NUL */
    struct mk_str args;      /* path and further arguments, each with a NUL after it */
};

struct cgi_interpreters {
    struct cgi_interpreter *first, **last;
};

/* A section; constant once the configuration is loaded. */
struct cgi_conf {
    struct mk_pattern match;
    struct mk_str root;   /* absolute; empty: below DocumentRoot */
    struct mk_str script; /* absolute: the one script of all paths; empty: not set */
    struct cgi_interpreters interpreters;
    int64_t processes_max, queue_max;
    uint32_t queue_timeout_ms, timeout_ms;
    struct mk_child_limits limits;
    struct mk_cgi_extras env;
    bool local_redirect, authorization, user_dirs;
    int encoded_slash; /* enum mk_encoded_slash */
    struct mk_gateway_buffer buffer;
    uint64_t spool_request_bytes; /* 0: Off; UINT64_MAX: On */
    uint64_t head_bytes_max;
    struct mk_response_limits head_limits;
};

extern const struct mk_conf_section cgi_sections[];

/* Returns the interpreter for a file; NULL: it is executed itself. */
const struct cgi_interpreter *cgi_conf_find_interpreter(const struct cgi_conf *conf, struct mk_str file);
/* Checks what is in the file system, for a host_start: reports what is wrong. Returns 0 or -EINVAL. */
int cgi_conf_check_files(struct mk_host *host, const struct cgi_conf *conf);

#endif
