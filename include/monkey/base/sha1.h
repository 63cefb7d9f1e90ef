// SPDX-License-Identifier: Apache-2.0
/*
 * SHA-1 (RFC 3174), for protocols that prescribe it, as WebSocket does. Not for signatures or passwords: collisions can
 * be computed.
 */
#ifndef MONKEY_SHA1_H
#define MONKEY_SHA1_H

#include <stddef.h>
#include <stdint.h>

#include "../status.h"

MK_C_BEGIN

enum { MK_SHA1_BYTES = 20 };

/* Writes the digest of `len` bytes. */
MK_API void mk_sha1(uint8_t to[MK_SHA1_BYTES], const void *data, size_t len);

MK_C_END

#endif
