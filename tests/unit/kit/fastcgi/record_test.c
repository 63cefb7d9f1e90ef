// SPDX-License-Identifier: Apache-2.0
/* FastCGI records: whole, byte by byte and against a page that cannot be read; what is none; lengths of pairs. */
#include "testing.h"

#include <monkey/kit/fastcgi.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OUT_BYTES = 256 };

/* What a sequence of records has. */
struct outcome {
    char out[OUT_BYTES], err[OUT_BYTES];
    size_t out_len, err_len, end_len;
    unsigned ends; /* records that are complete */
    int result;    /* 0 or -EINVAL */
    bool is_done;
};

static void add(char *to, size_t *len, struct mk_str bytes)
{
    assert_true(*len + bytes.len <= OUT_BYTES);
    if (bytes.len)
        memcpy(to + *len, bytes.p, bytes.len);
    *len += bytes.len;
}

static void take_part(struct outcome *o, const struct mk_fastcgi_part *part)
{
    o->ends += part->is_last;
    if (part->type == MK_FASTCGI_STDOUT)
        add(o->out, &o->out_len, part->bytes);
    if (part->type == MK_FASTCGI_STDERR)
        add(o->err, &o->err_len, part->bytes);
    if (part->type == MK_FASTCGI_END_REQUEST)
        o->end_len += part->bytes.len;
}

static bool is_between_records(const struct mk_fastcgi_reader *r)
{
    return !r->header_len && !r->content_left && !r->padding_left;
}

/* Reads pieces of `size` bytes, each behind the last byte of which a page begins that cannot be read. */
static struct outcome read_all(struct mk_str in, size_t size)
{
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct mk_fastcgi_reader reader = {0};
    struct outcome o = {0};
    assert_int_equal(mprotect(pages + page, (size_t)page, PROT_NONE), 0);
    for (size_t at = 0; at < in.len && o.result == 0; at += size) {
        size_t n = in.len - at < size ? in.len - at : size;
        char *from = pages + page - n;
        memcpy(from, in.p + at, n);
        while (n && o.result == 0) {
            struct mk_fastcgi_part part;
            ssize_t used = mk_fastcgi_read(&reader, mk_str(from, n), &part);
            if (used < 0) {
                o.result = (int)used;
                break;
            }
            assert_in_range(used, 1, n);
            take_part(&o, &part);
            from += used;
            n -= (size_t)used;
        }
    }
    o.is_done = is_between_records(&reader);
    munmap(pages, 2 * (size_t)page);
    return o;
}

#define RECORDS \
    "\1\6\0\1\0\5\3\0hello\0\0\0" /* with padding */ \
    "\1\7\0\1\0\4\0\0oops" \
    "\1\6\0\1\0\3\1\0 yo\0" \
    "\1\6\0\1\0\0\0\0" /* the end of the stream */ \
    "\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0"

TEST(any_pieces)
{
    struct mk_str in = mk_str(RECORDS, sizeof(RECORDS) - 1);
    for (size_t size = 1; size <= in.len; size++) {
        struct outcome o = read_all(in, size);
        assert_int_equal(o.result, 0);
        assert_str_equal(mk_str(o.out, o.out_len), "hello yo");
        assert_str_equal(mk_str(o.err, o.err_len), "oops");
        assert_int_equal(o.end_len, MK_FASTCGI_END_BYTES);
        assert_int_equal(o.ends, 5);
        assert_true(o.is_done);
    }
}

TEST(no_records)
{
    static const struct {
        const char *bytes;
        int result;
    } rows[] = {
        {"\2\6\0\1\0\0\0\0", -EINVAL},                                   /* version */
        {"\0\6\0\1\0\0\0\0", -EINVAL},   {"\1\6\0\2\0\0\0\0", -EINVAL},  /* another request */
        {"\1\6\1\1\0\0\0\0", -EINVAL},   {"\1\1\0\1\0\0\0\0", -EINVAL},  /* what a server sends */
        {"\1\5\0\1\0\0\0\0", -EINVAL},   {"\1\12\0\0\0\0\0\0", -EINVAL}, /* of management, which was not asked for */
        {"\1\377\0\1\0\0\0\0", -EINVAL}, {"HTTP/1.1", -EINVAL},          {"\1\6\0\1\0\0\0\377", 0}, /* reserved */
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t size = 1; size <= 8; size++)
            assert_int_equal(read_all(mk_str(rows[i].bytes, 8), size).result, rows[i].result);
}

TEST(incomplete)
{
    struct mk_str in = mk_str(RECORDS, sizeof(RECORDS) - 1);
    static const size_t ends[] = {16, 28, 40, 48};
    for (size_t len = 1; len < in.len; len++) {
        bool is_end = false;
        for (size_t i = 0; i < COUNT(ends); i++)
            is_end |= len == ends[i];
        assert_int_equal(read_all(mk_str(in.p, len), 3).is_done, is_end);
    }
}

TEST(longest_record)
{
    static char bytes[MK_FASTCGI_HEADER_BYTES + 65535 + 255] = "\1\6\0\1\377\377\377";
    struct mk_fastcgi_reader reader = {0};
    struct mk_fastcgi_part part;
    size_t content = 0;
    for (size_t at = 0; at < sizeof(bytes);) {
        ssize_t n = mk_fastcgi_read(&reader, mk_str(bytes + at, sizeof(bytes) - at), &part);
        assert_true(n > 0);
        at += (size_t)n;
        content += part.bytes.len;
    }
    assert_int_equal(content, 65535);
    assert_true(is_between_records(&reader));
}

TEST(headers)
{
    char header[MK_FASTCGI_HEADER_BYTES];
    mk_fastcgi_write_header(header, MK_FASTCGI_STDIN, 0x1234);
    assert_memory_equal(header, "\1\5\0\1\x12\x34\0\0", sizeof(header));
}

TEST(lengths)
{
    static const struct {
        size_t name, value, n;
        const char *bytes;
    } rows[] = {
        {0, 0, 2, "\0\0"},
        {127, 1, 2, "\177\1"},
        {1, 128, 5, "\1\200\0\0\200"},
        {128, 127, 5, "\200\0\0\200\177"},
        {0x12345, 0x7fffffff, 8, "\200\1\x23\x45\377\377\377\377"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char lengths[MK_FASTCGI_NAME_LENGTHS_MAX];
        assert_int_equal(mk_fastcgi_write_lengths(lengths, rows[i].name, rows[i].value), rows[i].n);
        assert_memory_equal(lengths, rows[i].bytes, rows[i].n);
    }
}
