// SPDX-License-Identifier: Apache-2.0
/*
 * The order of entries: folders first; then by name, size or date; equal ones by name. Names are compared as people
 * read them: without regard to the case of ASCII letters, and numbers by their values ("file2" before "file10").
 */
#ifndef DIRLISTING_ORDER_H
#define DIRLISTING_ORDER_H

#include "listing.h"

/* The words for an enum listing_sort, and for ascending (0) and descending (1). They end with NULL. */
extern const char *const order_sorts[];
extern const char *const order_directions[];

/* Compares two names. Returns a negative number, 0 (the same bytes) or a positive number. */
int order_compare_names(struct mk_str a, struct mk_str b);

/* Sorts the entries. Any thread; may allocate, and works in place without memory. */
void order_sort(struct listing *listing, enum listing_sort sort, bool descending);

#endif
