// SPDX-License-Identifier: Apache-2.0
/* Precompressed variants of a file: F.br, F.zst and F.gz next to F. */
#ifndef STATIC_PRECOMPRESSED_H
#define STATIC_PRECOMPRESSED_H

#include "site.h"

/* Parses the words of Precompressed into `codings`, and reports errors. */
void mk__static_precompressed_check(const struct mk_conf_check *check, struct static_host *host);

/*
 * Replaces `f`, the file `name`, by the variant with the highest weight in `accept` that exists and is not older. With
 * `cached`, `f` may become FOUND_NOTHING with EAGAIN. Does nothing if PrecompressedMatch does not match the file.
 */
void mk__static_precompressed_select(struct static_site *site, const char *name, const struct find_mode *mode,
                                     struct find_result *f);

#endif
