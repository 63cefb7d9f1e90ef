// SPDX-License-Identifier: Apache-2.0
/*
 * A response's body on its way through a encoder: the filter, piece by piece.
 */
#ifndef COMPRESS_FILTER_H
#define COMPRESS_FILTER_H

#include "encoder.h"
#include "budget.h"

/*
 * From now on `req` sends its body in this coding; only before its head leaves. `size` is that of the body, or
 * ENCODER_SIZE_UNKNOWN; `limits` must live as long as `req`. 0, or -errno: the body leaves as it is.
 */
int filter_start(struct mk_request *req, enum mk_coding coding, int level, uint64_t size,
                 const struct budget_limits *limits);

#endif
