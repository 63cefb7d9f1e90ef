// SPDX-License-Identifier: Apache-2.0
/*
 * Which server has a key: rendezvous hashing. Each server has a score for the key, and the highest one wins. A server
 * more or less so moves only the keys that it has, and no table of points is needed, which for few servers is also
 * slower and less even.
 */
#ifndef DUDA_PACKAGES_MEMCACHED_HASH_H
#define DUDA_PACKAGES_MEMCACHED_HASH_H

#include <monkey/base/str.h>

/* Returns the hash of a key, or of a server's text. */
uint64_t mc_hash(struct mk_str text);
/* Returns the score of a server for a key. */
uint64_t mc_score(uint64_t server, uint64_t key);

#endif
