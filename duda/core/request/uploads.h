// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of a body of the type multipart/form-data: files for the object `multipart`, and fields, which become pairs
 * of the object `form`.
 */
#ifndef DUDA_CORE_REQUEST_UPLOADS_H
#define DUDA_CORE_REQUEST_UPLOADS_H

#include <duda/types.h>

struct uploads;

/*
 * Reads the collected body at the first call, fields into `dr->dispatch->form`, and later returns the same.
 * Returns NULL without such a body, or without memory.
 */
const struct uploads *uploads_read(duda_request_t *dr);

#endif
