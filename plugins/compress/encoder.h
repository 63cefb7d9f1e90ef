// SPDX-License-Identifier: Apache-2.0
/*
 * One interface for the encoders of zlib, libbrotlienc and libzstd: bytes in, bytes out, as far as there is room.
 *
 * An encoder counts its memory on an account. Opening it fails if there is not enough; later calls do not.
 * encoder_bytes_max() is the most that it may use. An encoder belongs to one thread at a time.
 */
#ifndef COMPRESS_ENCODER_H
#define COMPRESS_ENCODER_H

#include <monkey/arena.h>
#include <monkey/request.h>

/* The highest levels that do not need tens of megabytes, or tens of milliseconds in one call. */
enum { ENCODER_ZSTD_MAX = 12, ENCODER_BR_MAX = 6, ENCODER_GZIP_MAX = 9 };

/* A body of unknown length. */
#define ENCODER_SIZE_UNKNOWN UINT64_MAX

/* Process: take input. Flush: also write out all that is held back. Finish: write the end. */
enum encoder_op { ENCODER_PROCESS, ENCODER_FLUSH, ENCODER_FINISH };

struct encoder;

struct encoder_data {
    const char *in;
    size_t in_len;
    char *out;
    size_t out_len;
};

/* Returns the most that an encoder may use. `size`: of the whole body, or ENCODER_SIZE_UNKNOWN. */
size_t encoder_bytes_max(enum mk_coding coding, int level, uint64_t size);

/* Opens an encoder; NULL without memory. */
struct encoder *encoder_open(struct mk_account *account, enum mk_coding coding, int level, uint64_t size);
void encoder_close(struct encoder *e);

/*
 * Runs `op`, and advances `in` and `out` of `data`.
 * Returns 0 (done), MK_AGAIN (it needs more room: call it with the same `op` and no new input) or -EIO.
 */
int encoder_run(struct encoder *e, enum encoder_op op, struct encoder_data *data);

#endif
