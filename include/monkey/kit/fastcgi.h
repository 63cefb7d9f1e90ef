// SPDX-License-Identifier: Apache-2.0
/*
 * FastCGI 1.0, as a server speaks it: records, requests, and the output of an application out of them. Pure and
 * resumable: it reads nothing and keeps no pointer to the bytes; only requests are appended to a buffer.
 *
 *     record  =  version type id(2) length(2) padding reserved, content, padding
 *
 * All requests have the number 1: a connection carries one at a time.
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_FASTCGI_H
#define MONKEY_FASTCGI_H

#include "cgi.h"
#include "http_client.h"

MK_C_BEGIN

enum {
    MK_FASTCGI_HEADER_BYTES = 8,
    MK_FASTCGI_END_BYTES = 8,        /* content of MK_FASTCGI_END_REQUEST */
    MK_FASTCGI_CONTENT_MAX = 65528,  /* that is sent: a multiple of eight needs no padding */
    MK_FASTCGI_NAME_LENGTHS_MAX = 8, /* bytes of both lengths of a pair */
};

enum mk_fastcgi_type {
    MK_FASTCGI_BEGIN_REQUEST = 1,
    MK_FASTCGI_ABORT_REQUEST = 2,
    MK_FASTCGI_END_REQUEST = 3,
    MK_FASTCGI_PARAMS = 4,
    MK_FASTCGI_STDIN = 5,
    MK_FASTCGI_STDOUT = 6,
    MK_FASTCGI_STDERR = 7,
};

enum mk_fastcgi_protocol_status {
    MK_FASTCGI_COMPLETE,
    MK_FASTCGI_CANT_MPX_CONN,
    MK_FASTCGI_OVERLOADED,
    MK_FASTCGI_UNKNOWN_ROLE,
};

/* ── records ── */

/* Zeros at first. */
struct mk_fastcgi_reader {
    uint8_t header[MK_FASTCGI_HEADER_BYTES];
    uint8_t header_len;
    uint8_t type;
    uint8_t padding_left;
    uint16_t content_left;
    const char *fault; /* what is wrong, for -EINVAL, as a part of a sentence; a literal */
};

/* What was read: a part of a record's content. */
struct mk_fastcgi_part {
    uint8_t type; /* MK_FASTCGI_END_REQUEST, MK_FASTCGI_STDOUT or MK_FASTCGI_STDERR; 0: nothing yet */
    bool is_last; /* of its record */
    struct mk_str bytes;
};

/*
 * Takes bytes of a connection, and finds at most one part, which points into `in`. Call again with the rest.
 * Returns the number of bytes that were used, at least one, or -EINVAL: no record that an application may send.
 */
MK_API ssize_t mk_fastcgi_read(struct mk_fastcgi_reader *r, struct mk_str in, struct mk_fastcgi_part *ret);

/* Writes the header of a record without padding. */
MK_API void mk_fastcgi_write_header(char to[MK_FASTCGI_HEADER_BYTES], enum mk_fastcgi_type type, size_t content_len);
/* Writes the lengths of a name and a value, which are below 2^31. Returns the number of bytes. */
MK_API size_t mk_fastcgi_write_lengths(char to[MK_FASTCGI_NAME_LENGTHS_MAX], size_t name_len, size_t value_len);

/* ── requests ── */

/*
 * Appends the beginning of a request for a responder. Variables, their end and the body follow:
 *
 *     size_t params = mk_fastcgi_begin(out, keep_conn);
 *     mk_fastcgi_add_pair(MK_STR("REQUEST_METHOD"), MK_STR("GET"), out);       // an mk_cgi_variable_fn
 *     err = mk_fastcgi_end_params(out, params);
 *     mk_fastcgi_add_header(out, MK_FASTCGI_STDIN, 0);                         // no body
 *
 * Returns where the variables begin, for mk_fastcgi_end_params().
 */
MK_API size_t mk_fastcgi_begin(struct mk_buf *out, bool keep_conn);
/* Appends a variable to the struct mk_buf at `out`. Returns 0: errors stay in the buffer. */
MK_API int mk_fastcgi_add_pair(struct mk_str name, struct mk_str value, void *out);
/* Ends the variables. Returns 0 or -ENOBUFS: the buffer has an error, or they are too long for a record. */
MK_API int mk_fastcgi_end_params(struct mk_buf *out, size_t params);
/* Appends the header of a record without padding. Errors stay in the buffer. */
MK_API void mk_fastcgi_add_header(struct mk_buf *out, enum mk_fastcgi_type type, size_t content_len);

/* ── responses ── */

/* Zeros at first. */
struct mk_fastcgi_decoder {
    struct mk_fastcgi_reader reader;
    uint8_t end[MK_FASTCGI_END_BYTES]; /* the content of MK_FASTCGI_END_REQUEST */
    uint8_t end_len;
    const char
        *fault; /* what is wrong, if there is an error, as a part of a sentence; a literal. NULL: it is overloaded */
};

/* Tells whether the response has ended. */
static inline bool mk_fastcgi_has_end(const struct mk_fastcgi_decoder *d)
{
    return d->end_len == MK_FASTCGI_END_BYTES;
}

/* Gets what the application writes to its error output. */
typedef void (*mk_fastcgi_stderr_fn)(struct mk_str bytes, void *ctx);

/*
 * Takes bytes of a connection: leaves the output of the application in their place, and calls `on_stderr` (NULL: none)
 * for its error output. `ret_left` gets the number of bytes after the end, which are padding up to
 * d->reader.padding_left.
 * Returns 0, 1 (the response has ended), -EBUSY (the application is overloaded, or takes one request at a time),
 * -ENOPROTOOPT (it is no responder) or -EINVAL.
 */
MK_API int mk_fastcgi_decode(struct mk_fastcgi_decoder *d, char *bytes, size_t *len, size_t *ret_left,
                             mk_fastcgi_stderr_fn on_stderr, void *ctx);

/* State of mk_fastcgi_codec, for one response. Zeros at first. */
struct mk_fastcgi_response {
    struct mk_fastcgi_decoder decoder;
    struct mk_cgi_head head;
};

/*
 * Lets mk_http_client read the response to a request that is as above, with a struct mk_fastcgi_response as its state.
 * An application that is overloaded is -EUSERS.
 */
extern MK_API const struct mk_http_client_codec mk_fastcgi_codec;

MK_C_END

#endif
