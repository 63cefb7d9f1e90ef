// SPDX-License-Identifier: Apache-2.0
/*
 * Base64 (RFC 4648). Both functions append to a buffer, whose sticky error reports that it is full or that there is no
 * memory; nothing is then appended. `data` and `text` must not be in the buffer.
 */
#ifndef MONKEY_BASE64_H
#define MONKEY_BASE64_H

#include <stddef.h>

#include "buf.h"
#include "str.h"

MK_C_BEGIN

enum mk_base64_form {
    MK_BASE64,     /* section 4: with "+" and "/", padded with "=" to a multiple of 4 */
    MK_BASE64_URL, /* section 5: with "-" and "_", not padded */
};

/* Appends the encoding of `len` bytes. */
MK_API void mk_base64_encode(struct mk_buf *out, const void *data, size_t len, enum mk_base64_form form);

/*
 * Appends the bytes that `text` encodes, which must be in exactly that form: without line breaks, and the unused bits
 * of the last digit 0, so that two texts never encode the same bytes. Returns 0, -EINVAL (nothing is appended) or the
 * sticky error of the buffer.
 */
MK_API int mk_base64_decode(struct mk_buf *out, struct mk_str text, enum mk_base64_form form);

MK_C_END

#endif
