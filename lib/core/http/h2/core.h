// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP/2 is in a separate shared object, so that servers whose clients do not use it need no memory for it: the object
 * is opened when the first one does. These tables hold the functions that it and the rest of lib/core/http call of each
 * other. Tests link both together.
 *
 *     conn.c ─► c->proto (struct mk__proto) ─► send.c, session.c ─► module.c ─► struct mk__h2_core ─► request.c ...
 */
#ifndef MK_HTTP_H2_CORE_H
#define MK_HTTP_H2_CORE_H

#include "base/arena.h"
#include "base/counters_memory.h"
#include "http/block.h"
#include "http/conn.h"
#include "http/extra.h"
#include "http/parts.h"
#include "http/tunnel.h"

/* Functions of the rest of the program, for the object: X(type, name, parameters, arguments). */
#define MK__H2_CORE(X) \
    X(void *, mk__arena_alloc_piece, (struct mk_account * account, size_t size), (account, size)) \
    X(void, mk__arena_free_piece, (struct mk_account * account, void *p, size_t size), (account, p, size)) \
    X(bool, mk__block_next, (struct mk_str * lines, struct mk_str * ret_name, struct mk_str * ret_value), \
      (lines, ret_name, ret_value)) \
    X(enum mk__conn_state, mk__conn_begin_close, (struct mk__conn * c), (c)) \
    X(void, mk__counters_memory_add_shared, (uint32_t slot, int64_t n), (slot, n)) \
    X(ssize_t, mk__filter_read_output, (struct mk_request * req, char *to, size_t size), (req, to, size)) \
    X(void, mk__filter_begin_turn, (struct mk_request * req), (req)) \
    X(void, mk__trailers_add, (struct mk_request * req, struct mk_str name, struct mk_str value), (req, name, value)) \
    X(int, mk__interim_add, (struct mk_request * req, int status, const struct mk_header_field *fields, unsigned n), \
      (req, status, fields, n)) \
    X(void, mk__interim_drop_first, (struct mk_request * req), (req)) \
    X(struct mk_str, mk__context_date, (struct mk__context * http), (http)) \
    X(ssize_t, mk__parts_read, (struct mk__parts_reader * q, char *to, size_t size), (q, to, size)) \
    X(size_t, mk__parts_peek, (const struct mk__parts_reader *q, const struct iovec *to, int pieces), (q, to, pieces)) \
    X(void, mk__parts_skip, (struct mk__parts_reader * q, size_t bytes), (q, bytes)) \
    X(void, mk__request_deliver_body, (struct mk_request * req, struct mk_str piece, bool end), (req, piece, end)) \
    X(void, mk__request_begin, (struct mk_request * req, int status, bool body_ended), (req, status, body_ended)) \
    X(void, mk__request_check_rate, (struct mk_request * req), (req)) \
    X(int, mk__request_copy_head, (struct mk_request * req), (req)) \
    X(void, mk__request_finish, (struct mk_request * req), (req)) \
    X(bool, mk__request_time_out, (struct mk_request * req, int status, bool notifies), (req, status, notifies)) \
    X(struct mk_request *, mk__request_new, (struct mk__context * http, const struct mk__request_ops *ops, void *ctx), \
      (http, ops, ctx)) \
    X(void, mk__response_call_writable, (struct mk_request * req), (req)) \
    X(void, mk__response_decide_body, (struct mk_request * req), (req)) \
    X(void, mk__response_run_hooks, (struct mk_request * req), (req)) \
    X(void, mk__response_drop_part, (struct mk_request * req), (req)) \
    X(void, mk__response_drop_parts, (struct mk_request * req), (req)) \
    X(void, mk__response_reset_to_status, (struct mk_request * req, int status), (req, status)) \
    X(int, mk__sock_flush, \
      (struct mk__sock * s, struct mk__scratch * out, struct mk_account * account, unsigned flags), \
      (s, out, account, flags)) \
    X(ssize_t, mk__sock_read, (struct mk__sock * s, void *to, size_t size), (s, to, size)) \
    X(void, mk__tunnel_call_ready, (struct mk_request * req, unsigned events), (req, events))

struct mk__h2_core {
#define MK__H2_MEMBER(type, name, parameters, arguments) type(*name) parameters;
    MK__H2_CORE(MK__H2_MEMBER)
#undef MK__H2_MEMBER
};

extern const struct mk__h2_core mk__h2_core;

extern const struct mk__proto mk__h2_proto;

/* The symbol that the object exports. */
struct mk__h2_module {
    /* The version of the server that it was built for, and the sizes of shared structs: all must match. */
    const char *version;
    uint32_t core_size, proto_size, conn_size, http_size, request_size;
    const struct mk__proto *proto;
    void (*bind)(const struct mk__h2_core *core); /* sets the table, before the first call of `proto` */
};

#define MK__H2_MODULE "mk__h2_module" /* name of the symbol */

#endif
