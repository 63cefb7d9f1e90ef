// SPDX-License-Identifier: Apache-2.0
/*
 * The object `form`: the pairs of a body of the type application/x-www-form-urlencoded, as a page sends a form, or the
 * fields of one of the type multipart/form-data (multipart.h). It has the functions of `qs`, with the same rules;
 * count() may also return the errors of multipart->count(). A request with another type has no pairs, nor has one whose
 * route has stream_body(), until multipart->read() adds them.
 */
#ifndef DUDA_FORM_H
#define DUDA_FORM_H

#include "qs.h"

DUDA_OBJECT(struct duda_api_pairs, form)

#endif
