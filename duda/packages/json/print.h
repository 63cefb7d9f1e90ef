// SPDX-License-Identifier: Apache-2.0
/*
 * Writes trees as JSON, in the layout of cJSON. cJSON itself prints numbers with 15 digits where more would be needed
 * (1.7.15: 9007199254740992 becomes 9.00719925474099e+15), and does not check how deep a tree is.
 */
#ifndef DUDA_PACKAGES_JSON_PRINT_H
#define DUDA_PACKAGES_JSON_PRINT_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

/*
 * Returns the text in memory of mem->alloc(), with its length in *ret_len; NULL: without memory, `item` is NULL or no
 * value, the tree is more than DUDA_JSON_DEPTH_MAX deep or the text longer than INT_MAX. Bytes of strings that are not
 * UTF-8 become U+FFFD.
 */
char *print_value(const struct cJSON *item, bool formatted, size_t *ret_len);

#endif
