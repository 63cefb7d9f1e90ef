// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a password: from the terminal without echo, or else the first line of the standard input.
 */
#ifndef PASSWD_PROMPT_H
#define PASSWD_PROMPT_H

#include <monkey/str.h>

/*
 * Reads a password of at most `size` - 1 bytes into `to`, which ends with a NUL then. `from_stdin`: not from the
 * terminal, even if there is one. `twice`: a terminal is asked again, and both must be the same.
 * Returns the length, or -errno: -E2BIG (too long), -EILSEQ (the two differ), -ENODATA (the end), -EINTR (a signal).
 */
int prompt_read(char *to, size_t size, bool from_stdin, bool twice);

#endif
