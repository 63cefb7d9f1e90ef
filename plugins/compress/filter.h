// SPDX-License-Identifier: Apache-2.0
/*
 * The filter that passes a response's body through an encoder.
 */
#ifndef COMPRESS_FILTER_H
#define COMPRESS_FILTER_H

#include "encoder.h"
#include "budget.h"

struct mk_worker;

/*
 * Adds the filter to a response whose head was not sent. `size` is that of the body, or ENCODER_SIZE_UNKNOWN; `limits`
 * and `worker` (which counts; NULL: none) must live as long as `req`.
 * Returns 0, or -errno (the body is not compressed).
 */
int filter_start(struct mk_request *req, enum mk_coding coding, int level, uint64_t size,
                 const struct budget_limits *limits, const struct mk_worker *worker);

#endif
