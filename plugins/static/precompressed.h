// SPDX-License-Identifier: Apache-2.0
/* Precompressed variants of a file: F.br, F.zst and F.gz beside F. Lean builds have none. */
#ifndef STATIC_PRECOMPRESSED_H
#define STATIC_PRECOMPRESSED_H

#include "static.h"

/* Reads the patterns of a line of PrecompressedMatch. As mk_conf_parse_fn. */
int precompressed_parse_match(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                              struct mk_buf *error);

/* Reads the words of Precompressed; complains about the line. */
void precompressed_check(const struct mk_conf_check *check, struct static_host *host);

/*
 * Puts a variant of the file `name`, which is `f`, in its place: the most welcome one that exists and is not
 * older. With `cached` the result may be EAGAIN. What PrecompressedMatch does not name has none.
 */
void precompressed_select(struct static_site *site, const char *name, const struct mk_accept *accept, bool cached,
                          struct find_result *f);

#endif
