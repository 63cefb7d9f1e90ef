// SPDX-License-Identifier: Apache-2.0
/*
 * The compressors of the libraries behind one face: bytes in, bytes out, as far as there is room.
 *
 * A coder draws its memory on an account, all that may be refused when it is opened; coder_bytes_max() is what it may
 * come to. It belongs to one thread at a time.
 */
#ifndef COMPRESS_CODER_H
#define COMPRESS_CODER_H

#include <monkey/arena.h>
#include <monkey/request.h>

/* The highest levels that take neither tens of megabytes nor tens of milliseconds at once. */
enum { CODER_ZSTD_MAX = 12, CODER_BR_MAX = 6, CODER_GZIP_MAX = 9 };

/* Of a body whose length nobody knows. */
#define CODER_SIZE_UNKNOWN UINT64_MAX

/* Take what is there; bring out all that is held back, so that it can be read; end. */
enum coder_op { CODER_GO_ON, CODER_FLUSH, CODER_END };

struct coder;

struct coder_data {
    const char *in;
    size_t in_len;
    char *out;
    size_t out_len;
};

/* `size`: of the whole body, or CODER_SIZE_UNKNOWN. */
size_t coder_bytes_max(enum mk_coding coding, int level, uint64_t size);

/* NULL: no memory. */
struct coder *coder_open(struct mk_account *account, enum mk_coding coding, int level, uint64_t size);
void coder_close(struct coder *c);

/*
 * Moves `data` forward on both sides. 0 when `op` is done, MK_AGAIN when it needs more room (the same `op` again, with
 * nothing new to read), -errno when the body cannot be completed.
 */
int coder_run(struct coder *c, enum coder_op op, struct coder_data *data);

#endif
