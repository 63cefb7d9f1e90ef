// SPDX-License-Identifier: Apache-2.0
/*
 * Content-Disposition (RFC 6266) for a file that the client saves.
 */
#ifndef DIRLISTING_DISPOSITION_H
#define DIRLISTING_DISPOSITION_H

#include <monkey/buf.h>
#include <monkey/str.h>

/*
 * Appends the value for a file NAME.SUFFIX. Any bytes in `name`: `filename` gets safe ASCII characters, and `filename*`
 * (RFC 8187), if that is not the same, UTF-8 without control characters. Neither begins with a dot.
 */
void disposition_write(struct mk_buf *out, struct mk_str name, struct mk_str suffix);

#endif
