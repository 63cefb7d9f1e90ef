// SPDX-License-Identifier: Apache-2.0
/*
 * Writes a tar archive, compressed or not, into a buffer. Over libarchive, which is opened when a host enables
 * archives. A writer belongs to one thread at a time.
 */
#ifndef DIRLISTING_TAR_H
#define DIRLISTING_TAR_H

#include "rules.h"

struct tar;

/* Opens libarchive, once for the process. Returns 0, or -ENOENT with the reason in `error`. */
int tar_load(struct mk_buf *error);

/* Returns a writer, NULL without memory. Its bytes are appended to `out`. After tar_load(). */
struct tar *tar_new(enum archive_kind kind, struct mk_buf *out);
/* Frees the writer, and writes nothing more. */
void tar_free(struct tar *tar);
/* Sets the buffer for all further bytes. */
void tar_set_output(struct tar *tar, struct mk_buf *out);

/*
 * Begin an entry. `name` ends with a NUL; that of a folder with a slash before it. Owner and permissions of files are
 * not told: 0644 and 0755 of root. Like the following two return 0, -ENOMEM or -EIO.
 */
int tar_add_folder(struct tar *tar, const char *name, int64_t mtime_seconds);
int tar_add_file(struct tar *tar, const char *name, uint64_t bytes, int64_t mtime_seconds);
/* Writes the next bytes of a file, which must have as many as were announced. */
int tar_write(struct tar *tar, const char *data, size_t n);
/* Writes the end of the archive. */
int tar_end(struct tar *tar);

#endif
