// SPDX-License-Identifier: Apache-2.0
/*
 * The kind of a file by the extension of its name, for icons and titles.
 */
#ifndef DIRLISTING_KIND_H
#define DIRLISTING_KIND_H

#include <monkey/str.h>

/* Returns "image", "video", "audio", "document", "text", "code", "archive", "font", "program" or "file"; a literal. */
struct mk_str kind_of(struct mk_str name);

#endif
