// SPDX-License-Identifier: Apache-2.0
/*
 * Formats the header lines of a file once, for many responses (mk_file_block()), and reads such lines again
 * (http/block.h).
 */
#include "http/block.h"

#include <monkey/base/buf.h>

#include "http/message/date.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

enum { TYPE_BYTES_MAX = UINT8_MAX };

static const struct mk_str names[MK_BLOCK_LINES] = {
    [MK_BLOCK_LAST_MODIFIED] = MK_STR_INIT("Last-Modified"),
    [MK_BLOCK_ETAG] = MK_STR_INIT("ETag"),
    [MK_BLOCK_CONTENT_TYPE] = MK_STR_INIT("Content-Type"),
    [MK_BLOCK_CONTENT_ENCODING] = MK_STR_INIT("Content-Encoding"),
    [MK_BLOCK_ACCEPT_RANGES] = MK_STR_INIT("Accept-Ranges"),
};

bool mk__block_next(struct mk_str *lines, struct mk_str *ret_name, struct mk_str *ret_value)
{
    const char *colon = lines->len ? memchr(lines->p, ':', lines->len) : NULL;
    const char *end = colon ? memchr(colon, '\r', (size_t)(lines->p + lines->len - colon)) : NULL;
    if (!end)
        return false;
    *ret_name = mk_str(lines->p, (size_t)(colon - lines->p));
    *ret_value = mk_str(colon + 2, (size_t)(end - colon - 2));
    size_t used = (size_t)(end + 2 - lines->p);
    *lines = mk_str_after(*lines, used);
    return true;
}

struct mk_str mk__block_find(struct mk_str lines, struct mk_str name)
{
    struct mk_str at, value;
    while (mk__block_next(&lines, &at, &value))
        if (mk_str_ieq(at, name))
            return value;
    return MK_STR_NONE;
}

size_t mk__block_format_etag(const struct mk_file *file, bool weak, char out[MK__BLOCK_ETAG_BYTES])
{
    size_t len =
        mk__validators_format_etag(file->bytes, file->mtime_seconds, file->mtime_nanoseconds, file->version, weak, out);
    if (file->coding == MK_CODING_IDENTITY)
        return len;
    struct mk_str coding = mk_coding_name(file->coding);
    out[len - 1] = '-';
    memcpy(out + len, coding.p, coding.len);
    memcpy(out + len + coding.len, "\"", 2);
    return len + coding.len + 1;
}

bool mk__block_has_date(const struct mk_file *file)
{
    enum { SECONDS_OF_1970 = 365 * 24 * 60 * 60 };
    return file->mtime_seconds >= SECONDS_OF_1970;
}

bool mk__block_has_etag(const struct mk_file *file)
{
    return file->version || mk__block_has_date(file);
}

bool mk_file_is_settled(const struct mk_file *file, int64_t wall_seconds)
{
    return file->mtime_seconds <= wall_seconds - MK__ETAG_STRONG_SECONDS; /* file systems allow any mtime */
}

static void add_line(struct mk_buf *b, struct mk_response_block *block, enum mk_block_line line, struct mk_str value)
{
    assert(names[line].len == mk__block_name_len[line] && value.len <= UINT8_MAX);
    mk_buf_adds(b, names[line]);
    mk_buf_adds(b, MK_STR(": "));
    block->value_len[line] = (uint8_t)value.len;
    mk_buf_adds(b, value);
    mk_buf_adds(b, MK_STR("\r\n"));
}

int mk_file_block(const struct mk_file *file, char to[MK_FILE_BLOCK_BYTES], struct mk_response_block *ret_block)
{
    MK_UNINITIALIZED char etag[MK__BLOCK_ETAG_BYTES], date[MK__DATE_BYTES + 1];
    struct mk_buf b;
    if (!file->type.len || file->type.len > TYPE_BYTES_MAX)
        return -EMSGSIZE;
    *ret_block = (struct mk_response_block){.content_length = file->bytes};
    mk_buf_init_fixed(&b, to, MK_FILE_BLOCK_BYTES);
    if (mk__block_has_date(file))
        add_line(&b, ret_block, MK_BLOCK_LAST_MODIFIED, mk_str(date, mk__date_format(file->mtime_seconds, date)));
    if (mk__block_has_etag(file))
        add_line(&b, ret_block, MK_BLOCK_ETAG, mk_str(etag, mk__block_format_etag(file, false, etag)));
    add_line(&b, ret_block, MK_BLOCK_CONTENT_TYPE, file->type);
    if (file->coding != MK_CODING_IDENTITY)
        add_line(&b, ret_block, MK_BLOCK_CONTENT_ENCODING, mk_coding_name(file->coding));
    if (!file->no_ranges)
        add_line(&b, ret_block, MK_BLOCK_ACCEPT_RANGES, MK_STR("bytes"));
    ret_block->length_at = (uint16_t)b.len;
    mk_buf_addf(&b, "Content-Length: %" PRIu64 "\r\n", file->bytes);
    ret_block->text = mk_buf_str(&b);
    return b.err;
}
