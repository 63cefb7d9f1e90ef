// SPDX-License-Identifier: Apache-2.0
/*
 * The object `form`: the pairs of a body of the type application/x-www-form-urlencoded, as a page sends a form. It has
 * the functions of `qs`, with the same rules. A request with another type, or whose route is in_pieces(), has no pairs.
 */
#ifndef DUDA_FORM_H
#define DUDA_FORM_H

#include "qs.h"

DUDA_OBJECT(struct duda_api_pairs, form)

#endif
