// SPDX-License-Identifier: Apache-2.0
/*
 * What a failure of libssl means for the caller of a transport.
 */
#ifndef TLS_SESSION_ERROR_H
#define TLS_SESSION_ERROR_H

#include "session.h"

/*
 * For the result of the last call, no more than zero: -EAGAIN; 0: the client has ended its side; else -errno, and the
 * connection is broken. Leaves libssl's queue empty, which it shares with other connections of the thread.
 */
int session_error(struct session *s, int result);

#endif
