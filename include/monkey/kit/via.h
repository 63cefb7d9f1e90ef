// SPDX-License-Identifier: Apache-2.0
/*
 * The header Via of requests to other servers (RFC 9110 section 7.6.3). The pseudonym that a section writes,
 * `monkey-` and a mark of the section and the request, tells it when the same request comes back.
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_VIA_H
#define MONKEY_VIA_H

#include "../base/buf.h"
#include "../request.h"

MK_C_BEGIN

enum { MK_VIA_HOPS_MAX = 10 };

/* Returns the seed of a section's marks: a random number, or without random bytes one that other sections have not. */
MK_API uint64_t mk_via_seed(const void *section);

/* Returns the mark of a request: of its method, its host, its path and its query. The same request has the same one. */
MK_API uint64_t mk_via_mark(uint64_t seed, struct mk_request *req);

/*
 * Tells whether a value of Via has this mark, or MK_VIA_HOPS_MAX names of servers like this one: these are in a loop in
 * which the request changes. Pure.
 */
MK_API bool mk_via_is_loop(struct mk_str via, uint64_t mark);

/* Writes the header: what the client has sent, and this server with a mark. */
MK_API void mk_via_write(struct mk_buf *out, struct mk_request *req, uint64_t mark);

MK_C_END

#endif
