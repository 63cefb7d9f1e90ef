// SPDX-License-Identifier: Apache-2.0
/*
 * Descriptors 0 to 2 in a program that has closed them: while there are servers they are /dev/null, so that no
 * connection gets such a number, to which the program, or a library of it, may write. Any thread.
 */
#ifndef MK_SERVER_STANDARD_FDS_H
#define MK_SERVER_STANDARD_FDS_H

/* A server was made, or opens descriptors: opens those that are closed now. */
void mk__standard_fds_get(void);
void mk__standard_fds_fill(void);
/* A server was freed. With the last one those are closed that the program has not replaced. */
void mk__standard_fds_put(void);

#endif
