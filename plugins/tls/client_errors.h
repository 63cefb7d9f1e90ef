// SPDX-License-Identifier: Apache-2.0
/*
 * Why a connection to a server has failed, for people and for Proxy-Status.
 */
#ifndef TLS_CLIENT_ERRORS_H
#define TLS_CLIENT_ERRORS_H

#include <monkey/transport.h>

/* As describe_error() of mk_transport. */
const char *client_errors_describe(const struct mk_io *io, int err, struct mk_buf *out);

#endif
