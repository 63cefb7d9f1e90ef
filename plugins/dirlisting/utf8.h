// SPDX-License-Identifier: Apache-2.0
/*
 * Names of files are bytes; where text is written, they must be UTF-8.
 */
#ifndef DIRLISTING_UTF8_H
#define DIRLISTING_UTF8_H

#include <monkey/str.h>

#define UTF8_REPLACEMENT MK_STR("\xef\xbf\xbd") /* U+FFFD */

/*
 * Cuts the next character off `rest`, which is not empty. If its bytes are not UTF-8, the result is U+FFFD, one for
 * each maximal part of a malformed sequence (section 3.9 of the Unicode standard).
 */
struct mk_str utf8_next(struct mk_str *rest);

#endif
