// SPDX-License-Identifier: Apache-2.0
/*
 * Responses of the API, which no cache keeps.
 */
#ifndef CACHE_ANSWER_H
#define CACHE_ANSWER_H

#include <monkey/request.h>

/* Responds with a document in JSON, which is copied. */
void answer_json(struct mk_request *req, int status, const struct mk_buf *document);
/* Responds with {"error": "sentence"}. */
void answer_error(struct mk_request *req, int status, const char *sentence);

#endif
