// SPDX-License-Identifier: Apache-2.0
/*
 * FastCGI 1.0 records, as a server sees them. Pure and resumable: bytes in, spans out; it reads nothing, allocates
 * nothing and keeps no pointer to the bytes.
 *
 *     record  =  version type id(2) length(2) padding reserved, content, padding
 *
 * All requests have the number 1: a connection carries one at a time.
 */
#ifndef FASTCGI_RECORD_H
#define FASTCGI_RECORD_H

#include <monkey/str.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    FCGI_HEADER_BYTES = 8,
    FCGI_END_BYTES = 8,        /* content of FCGI_END_REQUEST */
    FCGI_CONTENT_MAX = 65528,  /* that is sent: a multiple of eight needs no padding */
    FCGI_NAME_LENGTHS_MAX = 8, /* bytes of both lengths of a pair */
};

enum fcgi_type {
    FCGI_BEGIN_REQUEST = 1,
    FCGI_ABORT_REQUEST = 2,
    FCGI_END_REQUEST = 3,
    FCGI_PARAMS = 4,
    FCGI_STDIN = 5,
    FCGI_STDOUT = 6,
    FCGI_STDERR = 7,
};

enum fcgi_protocol_status { FCGI_COMPLETE, FCGI_CANT_MPX_CONN, FCGI_OVERLOADED, FCGI_UNKNOWN_ROLE };

/* Zeros at first. */
struct fcgi_reader {
    uint8_t header[FCGI_HEADER_BYTES];
    uint8_t header_len;
    uint8_t type;
    uint8_t padding_left;
    uint16_t content_left;
    const char *fault; /* what is wrong behind -EINVAL, as a part of a sentence; a literal */
};

/* What was read: a part of a record's content. */
struct fcgi_part {
    uint8_t type; /* enum fcgi_type: FCGI_END_REQUEST, FCGI_STDOUT or FCGI_STDERR; 0: nothing yet */
    bool is_last; /* of its record */
    struct mk_str bytes;
};

/*
 * Takes bytes of a connection, and finds at most one part, which points into `in`. Call again with the rest.
 * Returns the number of bytes that were used, at least one, or -EINVAL: no record that an application may send.
 */
ssize_t fcgi_record_read(struct fcgi_reader *r, struct mk_str in, struct fcgi_part *ret);

/* Tells whether the reader is between two records. */
static inline bool fcgi_record_is_done(const struct fcgi_reader *r)
{
    return !r->header_len && !r->content_left && !r->padding_left;
}

/* Writes the header of a record without padding. */
void fcgi_record_write_header(char to[FCGI_HEADER_BYTES], enum fcgi_type type, size_t content_len);
/* Writes the lengths of a name and a value, which are below 2^31. Returns the number of bytes. */
size_t fcgi_record_write_lengths(char to[FCGI_NAME_LENGTHS_MAX], size_t name_len, size_t value_len);

#endif
