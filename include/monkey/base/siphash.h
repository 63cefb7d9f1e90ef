// SPDX-License-Identifier: Apache-2.0
/*
 * SipHash-1-3: a keyed hash for tables whose keys come from clients. A client that does not know the
 * key cannot choose inputs that fall into one chain. It is no digest: do not use it to authenticate data.
 */
#ifndef MONKEY_SIPHASH_H
#define MONKEY_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#include "../status.h"

MK_C_BEGIN

/* Fills a key with random bytes of the kernel. Returns as mk_random() (<monkey/base/random.h>). */
MK_API int mk_siphash_key(uint64_t key[2]);
/* Returns the hash of `len` bytes. The same key and bytes have the same hash, on any machine. Any thread. */
MK_API uint64_t mk_siphash(const uint64_t key[2], const void *data, size_t len);

MK_C_END

#endif
