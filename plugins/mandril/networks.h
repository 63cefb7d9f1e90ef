// SPDX-License-Identifier: Apache-2.0
/*
 * A constant set of networks, made for thousands of them: a binary tree over the bits of their prefixes, in which one
 * lookup looks at as many nodes as are needed to tell the networks apart.
 */
#ifndef MANDRIL_NETWORKS_H
#define MANDRIL_NETWORKS_H

#include <monkey/base/address.h>

struct network_set;

/* Limits of a file of networks. */
enum { NETWORKS_MAX = 1000000, NETWORKS_BYTES_MAX = 64 * 1024 * 1024 };

/* Returns a set of networks, which are copied; NULL without memory. */
struct network_set *networks_new(const struct mk_network *items, size_t n);
void networks_free(struct network_set *set);

/* Returns whether a network of the set contains the address; an unknown address is in none. */
bool networks_contain(const struct network_set *set, const struct mk_address *address);
/* Returns whether the set contains all addresses of all networks of `other`. */
bool networks_cover(const struct network_set *set, const struct network_set *other);
/*
 * Returns how many nodes a lookup of the address reads, each in its own cache line: what a lookup costs without a
 * clock, for tests. Unix sockets: 0.
 */
unsigned networks_count_nodes(const struct network_set *set, const struct mk_address *address);
/* Returns the number of networks that are left when those that others contain are dropped, and halves are joined. */
size_t networks_count(const struct network_set *set);

/*
 * Reads networks as a file has them: one in a line, `#` begins a comment. `name` means the file in messages.
 * Returns 0, -ENOMEM, or -EINVAL (a line is wrong) or -EFBIG with "name:line:column: what is wrong" in `message`.
 */
int networks_read(struct mk_str text, struct mk_str name, struct network_set **ret, struct mk_buf *message);
/*
 * Reads a file as networks_read(). May block.
 * Returns as networks_read(), or another -errno with a sentence in `message`.
 */
int networks_load(const char *path, struct network_set **ret, struct mk_buf *message);

#endif
