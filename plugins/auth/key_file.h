// SPDX-License-Identifier: Apache-2.0
/* The bytes of a file of keys, which are wiped when they are freed. */
#ifndef AUTH_KEY_FILE_H
#define AUTH_KEY_FILE_H

#include <monkey/buf.h>

enum { KEY_FILE_BYTES_MAX = 1 << 20 };

struct key_file {
    char *data;
    size_t len, size;
    unsigned mode; /* the permissions of the file */
};

/*
 * Reads a regular file of at most KEY_FILE_BYTES_MAX bytes. May block.
 * Returns 0, -EINVAL (not such a file) or another -errno, with a sentence in `message`.
 */
int key_file_read(struct key_file *file, const char *path, struct mk_buf *message);
/* Returns 0 if only owner and group may read the file and only the owner may write it; -EINVAL with a sentence. */
int key_file_check_private(const struct key_file *file, const char *path, struct mk_buf *message);
/* Wipes and frees the bytes, also after an error. */
void key_file_free(struct key_file *file);

#endif
