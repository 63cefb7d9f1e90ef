// SPDX-License-Identifier: Apache-2.0
/*
 * Headers of a response, as the API offers them.
 */
#ifndef DUDA_CORE_REQUEST_HEADER_H
#define DUDA_CORE_REQUEST_HEADER_H

#include <monkey/base/str.h>

struct duda_request;

/* The most headers that a response can have. */
enum { HEADERS_MAX = 64 };

/* Headers that are put aside. */
struct header_list {
    unsigned n;
    struct {
        struct mk_str name, value;
    } items[HEADERS_MAX];
};

/* Adds a header from a row "Name: value", which it copies. Returns 0, -EINVAL, -EALREADY or -ENOMEM. */
int header_add_row(struct duda_request *dr, struct mk_str row);
/* Adds a header; `name` must be valid until the exchange ends, `value` is copied. Returns as header_add_row(). */
int header_add(struct duda_request *dr, struct mk_str name, struct mk_str value);
/* Sets Content-Type by a file name's extension. Returns 0, -ENOENT (it is unknown), -EALREADY or -ENOMEM. */
int header_set_type(struct duda_request *dr, struct mk_str extension);
/* Replaces Content-Type. Returns 0, -EINVAL, -EALREADY or -ENOMEM. */
int header_replace(struct duda_request *dr, struct mk_str name, struct mk_str value);

/* Gets the headers that were added, but for those that describe the body (Content-Type, ETag ...), and Location. */
void header_save(const struct duda_request *dr, struct header_list *ret);
/* Adds them again to a response that was made anew and whose head was not sent. */
void header_restore(struct duda_request *dr, const struct header_list *list);

#endif
