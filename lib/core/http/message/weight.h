// SPDX-License-Identifier: Apache-2.0
/*
 * Weights of headers that say what a client prefers (RFC 9110 section 12.4.2). Pure.
 */
#ifndef MK_HTTP_MESSAGE_WEIGHT_H
#define MK_HTTP_MESSAGE_WEIGHT_H

#include <monkey/base/str.h>

enum { MK__WEIGHT_MAX = 1000 };

/* Returns a qvalue in thousandths: "1", "0.5", "1.000"; -1 if it is malformed. */
int mk__weight_parse(struct mk_str s);

#endif
