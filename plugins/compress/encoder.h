// SPDX-License-Identifier: Apache-2.0
/*
 * The compressors of the libraries behind one face: bytes in, bytes out, as far as there is room.
 *
 * A encoder draws its memory on an account, all that may be refused when it is opened; encoder_bytes_max() is what it
 * may come to. It belongs to one thread at a time.
 */
#ifndef COMPRESS_ENCODER_H
#define COMPRESS_ENCODER_H

#include <monkey/arena.h>
#include <monkey/request.h>

/* The highest levels that take neither tens of megabytes nor tens of milliseconds at once. */
enum { ENCODER_ZSTD_MAX = 12, ENCODER_BR_MAX = 6, ENCODER_GZIP_MAX = 9 };

/* Of a body whose length nobody knows. */
#define ENCODER_SIZE_UNKNOWN UINT64_MAX

/* Take what is there; bring out all that is held back, so that it can be read; end. */
enum encoder_op { ENCODER_PROCESS, ENCODER_FLUSH, ENCODER_FINISH };

struct encoder;

struct encoder_data {
    const char *in;
    size_t in_len;
    char *out;
    size_t out_len;
};

/* `size`: of the whole body, or ENCODER_SIZE_UNKNOWN. */
size_t encoder_bytes_max(enum mk_coding coding, int level, uint64_t size);

/* NULL: no memory. */
struct encoder *encoder_open(struct mk_account *account, enum mk_coding coding, int level, uint64_t size);
void encoder_close(struct encoder *c);

/*
 * Moves `data` forward on both sides. 0 when `op` is done, MK_AGAIN when it needs more room (the same `op` again, with
 * nothing new to read), -errno when the body cannot be completed.
 */
int encoder_run(struct encoder *c, enum encoder_op op, struct encoder_data *data);

#endif
