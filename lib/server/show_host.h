// SPDX-License-Identifier: Apache-2.0
/*
 * The effective configuration of one host, with the name of its file above it.
 */
#ifndef MK_SERVER_SHOW_HOST_H
#define MK_SERVER_SHOW_HOST_H

#include <monkey/buf.h>

struct mk_host;

/* Appends an empty line, the file as a comment, and the effective values of the host's sections. */
void mk__show_host(const struct mk_host *host, struct mk_buf *out);

#endif
