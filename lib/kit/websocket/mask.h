// SPDX-License-Identifier: Apache-2.0
/*
 * The masking of payloads (RFC 6455 section 5.3): byte i of a frame's payload is XORed with byte i mod 4 of the key.
 * Masking and unmasking are the same. Pure.
 */
#ifndef MK_WEBSOCKET_MASK_H
#define MK_WEBSOCKET_MASK_H

#include <stddef.h>
#include <stdint.h>

/*
 * Masks `n` bytes, which stand `offset` bytes after the beginning of the payload. `key` is as in the frame, in the
 * order of memory. `to` and `from` are the same, or do not overlap.
 */
void mk__ws_mask(void *to, const void *from, size_t n, uint32_t key, size_t offset);

#endif
