// SPDX-License-Identifier: Apache-2.0
/*
 * HPACK (RFC 7541): header fields to bytes, and back. Both directions of a connection have a table of the fields that
 * the encoder has added lately. Neither knows whether it belongs to a client or a server.
 */
#ifndef MK_HTTP_H2_HPACK_H
#define MK_HTTP_H2_HPACK_H

#include "http/h2/hpack_table.h"

enum {
    MK__HPACK_ENCODER_BYTES = 512,  /* the encoder uses no more: the fields that it adds are few */
    MK__HPACK_FIELD_OVERHEAD = 16,  /* bytes of an encoded field in addition to name and value */
    MK__HPACK_RESIZE_BYTES_MAX = 8, /* bytes that mk__hpack_encode_begin() writes at most */
};

struct mk__hpack_field {
    struct mk__hpack_row row;
    size_t bytes;       /* length of name and value */
    bool cut;           /* name or value had no room, and is incomplete */
    bool never_indexed; /* a proxy must encode it likewise: section 7.1.3 */
};

/* A field to encode. */
struct mk__hpack_header {
    unsigned name_index; /* the first one of its name in the static table; 0: not known, it is `name` */
    struct mk_str name, value;
};

struct mk__hpack_decoder {
    struct mk__hpack_table table;
    uint32_t size_limit; /* of table.size_max: what we have announced */
    bool begun;          /* the current block has had a field: no more table size updates */
};

struct mk__hpack_encoder {
    struct mk__hpack_table table;
    uint32_t size_wanted; /* of table.size_max from the next block on, */
    uint32_t size_least;  /* and the least that it has to be before */
};

void mk__hpack_decoder_init(struct mk__hpack_decoder *d, struct mk_account *account);
void mk__hpack_decoder_release(struct mk__hpack_decoder *d);
/* Begins a header block. */
void mk__hpack_decode_begin(struct mk__hpack_decoder *d);
/*
 * Takes the next field off `in`, which may be a part of the block. Strings of the field are in `in`, in the table, or
 * in `room` if they had to be decoded; they are valid until the next call. What does not fit into `room` is cut.
 * Returns 0; MK_AGAIN: the block, or this part of it, has ended: what is left of `in` is the beginning of a field,
 * which must be there again with more after it; -EINVAL: malformed; -ENOMEM. Errors are final.
 */
int mk__hpack_decode(struct mk__hpack_decoder *d, struct mk_str *in, char *room, size_t size,
                     struct mk__hpack_field *ret_field);

void mk__hpack_encoder_init(struct mk__hpack_encoder *e, struct mk_account *account);
void mk__hpack_encoder_release(struct mk__hpack_encoder *e);
/* The peer allows this size of the table from now on. */
void mk__hpack_encode_resize(struct mk__hpack_encoder *e, uint32_t size);
/* Begins a header block: writes what must precede its fields, MK__HPACK_RESIZE_BYTES_MAX at most. Returns the end. */
char *mk__hpack_encode_begin(struct mk__hpack_encoder *e, char *to);
/*
 * Writes fields, whose names become lower case, each with MK__HPACK_FIELD_OVERHEAD bytes more than it has at most.
 * Without memory for the table they are encoded without one. Returns the end.
 */
char *mk__hpack_encode(struct mk__hpack_encoder *e, char *to, const struct mk__hpack_header *headers, unsigned n);

#endif
