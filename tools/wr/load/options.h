// SPDX-License-Identifier: Apache-2.0
/*
 * The command line, and what it leads to: a plan that all threads read.
 */
#ifndef WR_LOAD_OPTIONS_H
#define WR_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <monkey/base/arena.h>

#include "message.h"
#include "paths.h"
#include "target.h"

struct ssl_ctx_st;

struct plan {
    unsigned connections, threads, pipeline, sample;
    unsigned message_bytes;            /* of ws://; 0: not given */
    uint64_t requests;                 /* 0: until the end of `duration` */
    uint64_t per_connection;           /* requests of a connection, which is then closed; 0: any number */
    double duration, warm_up, timeout; /* seconds; no duration: 0 */
    double rate;                       /* requests a second of the open loop; 0: the closed loop */
    bool close, insecure, full_handshakes, broadcast, progress, to_head, has_help, has_version;
    enum pick pick;
    double exponent;
    uint64_t seed;
    const char *paths_file, *body_file, *ca, *hdr;
    struct request_form form;
    struct mk_buf headers;
    struct target target;
    struct paths paths;
    struct message message; /* of ws://; the request of the only path is its frame */
    struct ssl_ctx_st *tls; /* NULL: http:// */
    struct mk_arena arena;  /* of the whole run */
    int argc;
    char **argv;
};

/* Reads the command line, files and addresses. Returns 0, or -EINVAL after a message on standard error. */
int options_parse(struct plan *plan, int argc, char **argv);
void options_release(struct plan *plan);

/* Prints what --help or --version has asked for. Returns false if neither was given. */
bool options_print(const struct plan *plan);

#endif
