// SPDX-License-Identifier: Apache-2.0
/*
 * Calls every accessor of a request and reads every byte that it returns, so that a sanitizer sees spans that point
 * to memory which is not theirs. For hooks: they are called with requests of any kind, refused ones included.
 */
#ifndef MK_UNIT_ACCESSORS_H
#define MK_UNIT_ACCESSORS_H

#include <monkey/request.h>

/* Reads the bytes where the compiler cannot leave it out. */
static inline void read_bytes(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        (void)*(const volatile char *)&s.p[i];
}

static inline void read_request_headers(struct mk_request *req)
{
    struct mk_str name, value;
    for (unsigned i = 0; mk_request_header_at(req, i, &name, &value); i++) {
        read_bytes(name);
        read_bytes(value);
        read_bytes(mk_request_header_by_name(req, name));
    }
    for (unsigned id = 0; id < MK_HEADER_COUNT; id++)
        read_bytes(mk_request_header(req, (enum mk_header_id)id));
}

static inline void read_response_headers(struct mk_request *req)
{
    struct mk_str name, value;
    for (unsigned i = 0; mk_response_header_at(req, i, &name, &value); i++) {
        read_bytes(name);
        read_bytes(value);
        read_bytes(mk_response_get_header(req, name));
    }
}

static inline void read_trailers(struct mk_request *req)
{
    struct mk_str name, value;
    for (unsigned i = 0; mk_request_trailer_at(req, i, &name, &value); i++) {
        read_bytes(name);
        read_bytes(value);
    }
}

static inline void call_accessors(struct mk_request *req)
{
    uint64_t length;
    read_bytes(mk_request_method_name(req));
    read_bytes(mk_request_target(req));
    read_bytes(mk_request_path(req));
    read_bytes(mk_request_query(req));
    read_bytes(mk_request_original_path(req));
    read_bytes(mk_request_raw_path(req));
    read_bytes(mk_request_get_note(req, MK_STR("note")));
    read_bytes(mk_request_host(req));
    read_bytes(mk_request_user(req));
    read_bytes(mk_request_claims(req));
    read_bytes(mk_request_id(req));
    read_request_headers(req);
    read_response_headers(req);
    read_trailers(req);
    (void)mk_request_method(req);
    (void)mk_request_major(req);
    (void)mk_request_minor(req);
    (void)mk_request_has_encoded_slash(req);
    (void)mk_request_expects_continue(req);
    (void)mk_request_body_length(req, &length);
    (void)mk_request_began_us(req);
    (void)mk_response_began_us(req);
    (void)mk_request_bytes_received(req);
    (void)mk_request_head_bytes(req);
    (void)mk_response_head_bytes(req);
    (void)mk_response_get_status(req);
    (void)mk_response_get_length(req, &length);
    (void)mk_response_is_default_error(req);
}

#endif
