// SPDX-License-Identifier: Apache-2.0
/*
 * The question about a request: what a server with `Type Forward` gets, and by what an answer is kept.
 *
 *     GET /verify HTTP/1.1
 *     Host: auth.internal
 *     Cookie: session=...                       the headers of the client, without those of its connection and body
 *     X-Forwarded-Method: POST                  the subject: what the client asks for, and from where
 *     X-Forwarded-Proto: https
 *     X-Forwarded-Host: example.org
 *     X-Forwarded-Uri: /app/new?x=1
 *     X-Forwarded-For: 192.0.2.7
 */
#ifndef AUTH_FORWARD_REQUEST_H
#define AUTH_FORWARD_REQUEST_H

#include <monkey/request.h>

#include "forward_conf.h"

enum { FORWARD_SUBJECT_BYTES_MAX = 128 * 1024, FORWARD_HEAD_BYTES_MAX = 256 * 1024 };

/*
 * Writes the lines about the subject: those of the request or, if `path` (decoded) is not empty, those of a GET of that
 * path of the same host by the same client. What the client has sent in their names is not passed on, unless the peer
 * is in TrustedProxies. The URI is that of the client, decoded, normalized and encoded again.
 */
void forward_write_subject(struct mk_buf *out, struct mk_request *req, struct mk_str path);

/*
 * Writes the head of the question. Of the headers that answers set, it has only those that decide (ForwardCacheBy),
 * such as Authorization. `via_mark` tells that a question has come back (<monkey/via.h>).
 */
void forward_write_head(struct mk_buf *out, struct mk_request *req, const struct forward_conf *conf,
                        struct mk_str subject, uint64_t via_mark);

/* Writes the headers of the request that decide, for the key of an answer. No two lists of values have the same text.
 */
void forward_write_deciding(struct mk_buf *out, struct mk_request *req, const struct forward_conf *conf);

/*
 * Returns false if Connection or Trailer names a header that decides or that an answer sets: the header would be
 * missing in the question, a proxy after this plugin would remove it, or it would come after the body.
 */
bool forward_is_connection_valid(struct mk_request *req, const struct forward_conf *conf);

/* Tells whether the credentials of the client log the connection of the question in: no other may use it. */
bool forward_binds_connection(struct mk_request *req);

#endif
