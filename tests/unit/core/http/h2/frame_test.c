// SPDX-License-Identifier: Apache-2.0
/* HTTP/2 frames: their parts in pieces of every size, padding, and what their heads must say. */
#include "testing.h"

#include "http/h2/frame.h"

#include <stdio.h>

enum { LOG_BYTES = 512 };

/* ── the reader ── */

/* All events of `in`, of which `step` bytes arrive at a time: "begin 0/1(5) bytes hello end ...". */
static void read_all(struct mk_str in, size_t step, bool skips, char *log)
{
    struct mk__h2_frame_reader r = {.head_len = 0};
    enum mk__h2_frame_event last = MK__H2_READ_MORE;
    char content[256];
    size_t len = 0;
    log[0] = '\0';
    for (size_t at = 0; at < in.len && last != MK__H2_READ_PADDING_ERROR; at += step) {
        size_t n = in.len - at < step ? in.len - at : step;
        char *piece = mk_test_guarded(in.p + at, n);
        struct mk_str left = mk_str(piece, n), bytes;
        while ((last = mk__h2_frame_read(&r, &left, &bytes)) != MK__H2_READ_MORE && last != MK__H2_READ_PADDING_ERROR) {
            size_t used = strlen(log);
            char *to = log + used;
            size_t size = LOG_BYTES - used;
            if (last == MK__H2_READ_BEGIN) {
                snprintf(to, size, " begin %u/%d(%u)", r.frame.type, r.frame.stream_id, r.frame.len);
                len = 0;
                if (skips)
                    mk__h2_frame_skip(&r);
            } else if (last == MK__H2_READ_BYTES) {
                assert_true(bytes.len > 0 && bytes.p >= piece && bytes.p + bytes.len <= piece + n);
                memcpy(content + len, bytes.p, bytes.len);
                len += bytes.len;
            } else {
                snprintf(to, size, " end(%.*s)(%.*s)", (int)len, content, r.kept_len, (char *)r.payload);
            }
        }
        mk_test_unguard(piece, n);
    }
    if (last == MK__H2_READ_PADDING_ERROR)
        snprintf(log + strlen(log), 5, " bad");
}

static const struct {
    struct mk_str in;
    const char *log, *skipped;
} frames[] = {
    {MK_STR("\0\0\5\0\0\0\0\0\1hello"), " begin 0/1(5) end(hello)()", " begin 0/1(5) end()()"},
    {MK_STR("\0\0\0\0\1\x80\0\0\1"), " begin 0/1(0) end()()", " begin 0/1(0) end()()"}, /* a reserved bit */
    {MK_STR("\0\0\x0b\0\x08\0\0\0\3\4helloXpads"), " begin 0/3(11) end(helloX)(\4)", " begin 0/3(11) end()()"},
    {MK_STR("\0\0\1\0\x08\0\0\0\3\0"), " begin 0/3(1) end()()", " begin 0/3(1) end()()"},
    {MK_STR("\0\0\4\0\x08\0\0\0\3\3pad"), " begin 0/3(4) end()(\3)", " begin 0/3(4) end()()"},
    {MK_STR("\0\0\4\0\x08\0\0\0\3\4pad"), " begin 0/3(4) bad", " begin 0/3(4) end()()"},
    {MK_STR("\0\0\0\0\x08\0\0\0\3\0\0\5\0\0\0\0\0\1hello"), " begin 0/3(0) bad",
     " begin 0/3(0) end()() begin 0/1(5) end()()"},
    {MK_STR("\0\0\x07\1\x20\0\0\0\5abcdeHH"), " begin 1/5(7) end(HH)(abcde)", " begin 1/5(7) end()()"},
    {MK_STR("\0\0\x0a\1\x28\0\0\0\5\2abcdeHHpp"), " begin 1/5(10) end(HH)(\2abcde)", " begin 1/5(10) end()()"},
    {MK_STR("\0\0\x04\1\x20\0\0\0\5abcd"), " begin 1/5(4) bad", " begin 1/5(4) end()()"},
    {MK_STR("\0\0\x02\x09\x28\0\0\0\5HH"), " begin 9/5(2) end(HH)()", " begin 9/5(2) end()()"}, /* has no flags */
    {MK_STR("\0\0\x08\6\0\0\0\0\0pingping\0\0\0\4\1\0\0\0\0"), " begin 6/0(8) end()(pingping) begin 4/0(0) end()()",
     " begin 6/0(8) end()() begin 4/0(0) end()()"},
    {MK_STR("\0\0\x03\xfa\xff\0\0\0\7odd\0\0\4\3\0\0\0\0\1\0\0\0\0"), " begin 250/7(3) end()(odd) begin 3/1(4) end()()",
     " begin 250/7(3) end()() begin 3/1(4) end()()"},
};

TEST(frames_in_pieces)
{
    char log[LOG_BYTES];
    for (size_t i = 0; i < COUNT(frames); i++)
        for (size_t step = 1; step <= frames[i].in.len; step++) {
            read_all(frames[i].in, step, false, log);
            assert_string_equal(log, frames[i].log);
            read_all(frames[i].in, step, true, log);
            assert_string_equal(log, frames[i].skipped);
        }
}

/* Of a payload that is kept, there is no more than the beginning. */
TEST(long_payloads)
{
    static char in[9 + 5000 + 9];
    mk__h2_frame_put_head(in, 5000, MK__H2_FRAME_GOAWAY, 0, 0);
    memset(in + 9, 'x', 5000);
    mk__h2_frame_put_head(in + 5009, 0, MK__H2_FRAME_DATA, 0, 1);
    for (size_t step = 1; step < 6000; step = step * 3 / 2 + 1) {
        char log[LOG_BYTES], expected[512];
        read_all(mk_str(in, sizeof(in)), step, false, log);
        snprintf(expected, sizeof(expected), " begin 7/0(5000) end()(%.*s) begin 0/1(0) end()()",
                 MK__H2_FRAME_KEPT_BYTES, in + 9);
        assert_string_equal(log, expected);
    }
}

TEST(dependencies)
{
    static const struct {
        struct mk_str in;
        int32_t dependency;
    } cases[] = {
        {MK_STR("\0\0\5\2\0\0\0\0\5\x80\0\0\3\x10"), 3},
        {MK_STR("\0\0\5\1\x20\0\0\0\5\0\0\0\7\x10"), 7},
        {MK_STR("\0\0\6\1\x28\0\0\0\5\0\x80\0\0\5\x10"), 5},
        {MK_STR("\0\0\1\1\x08\0\0\0\5\0"), -1},
        {MK_STR("\0\0\0\1\0\0\0\0\5"), -1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk__h2_frame_reader r = {.head_len = 0};
        struct mk_str in = cases[i].in, bytes;
        while (mk__h2_frame_read(&r, &in, &bytes) != MK__H2_READ_END)
            ;
        assert_int_equal(mk__h2_frame_dependency(&r), cases[i].dependency);
    }
}

/* ── what heads must say ── */

TEST(rules)
{
    static const struct {
        uint8_t type, flags;
        int32_t stream;
        uint32_t len;
        enum mk__h2_error error;
    } cases[] = {
        {MK__H2_FRAME_DATA, 0, 1, 16384, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_DATA, 0, 1, 16385, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_DATA, 0, 0, 1, MK__H2_ERR_PROTOCOL},
        {MK__H2_FRAME_HEADERS, 0, 0, 1, MK__H2_ERR_PROTOCOL},
        {MK__H2_FRAME_HEADERS, 0, 1, 16385, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_DATA, MK__H2_FLAG_PADDED, 1, 1, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_DATA, MK__H2_FLAG_PADDED, 1, 0, MK__H2_ERR_FRAME_SIZE}, /* without Pad Length */
        {MK__H2_FRAME_HEADERS, MK__H2_FLAG_PRIORITY, 1, 4, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_HEADERS, MK__H2_FLAG_PRIORITY | MK__H2_FLAG_PADDED, 1, 5, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_HEADERS, MK__H2_FLAG_PRIORITY | MK__H2_FLAG_PADDED, 1, 6, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_CONTINUATION, MK__H2_FLAG_PADDED, 1, 0, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_PRIORITY, 0, 1, 5, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_PRIORITY, 0, 1, 4, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_PRIORITY, 0, 1, 16385, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_PRIORITY, 0, 0, 5, MK__H2_ERR_PROTOCOL},
        {MK__H2_FRAME_RST_STREAM, 0, 1, 4, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_RST_STREAM, 0, 1, 3, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_RST_STREAM, 0, 0, 4, MK__H2_ERR_PROTOCOL},
        {MK__H2_FRAME_SETTINGS, 0, 0, 12, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_SETTINGS, 0, 0, 7, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_SETTINGS, 0, 1, 6, MK__H2_ERR_PROTOCOL},
        {MK__H2_FRAME_SETTINGS, MK__H2_FLAG_ACK, 0, 0, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_SETTINGS, MK__H2_FLAG_ACK, 0, 6, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_PUSH_PROMISE, 0, 1, 4, MK__H2_ERR_PROTOCOL},
        {MK__H2_FRAME_PING, 0, 0, 8, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_PING, 0, 0, 9, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_PING, 0, 3, 8, MK__H2_ERR_PROTOCOL},
        {MK__H2_FRAME_GOAWAY, 0, 0, 7, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_GOAWAY, 0, 0, 100, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_GOAWAY, 0, 1, 8, MK__H2_ERR_PROTOCOL},
        {MK__H2_FRAME_WINDOW_UPDATE, 0, 0, 4, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_WINDOW_UPDATE, 0, 1, 4, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_WINDOW_UPDATE, 0, 1, 5, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_CONTINUATION, 0, 0, 5, MK__H2_ERR_PROTOCOL},
        {MK__H2_FRAME_PRIORITY_UPDATE, 0, 0, 4, MK__H2_ERR_NO_ERROR},
        {MK__H2_FRAME_PRIORITY_UPDATE, 0, 0, 3, MK__H2_ERR_FRAME_SIZE},
        {MK__H2_FRAME_PRIORITY_UPDATE, 0, 1, 4, MK__H2_ERR_PROTOCOL},
        {12, 0, 0, 16384, MK__H2_ERR_NO_ERROR},
        {12, 0, 9, 16385, MK__H2_ERR_FRAME_SIZE},
        {0xfa, 0xff, 0, 0, MK__H2_ERR_NO_ERROR},
        {0xfa, 0, 0, 16385, MK__H2_ERR_FRAME_SIZE},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk__h2_frame frame = {cases[i].len, cases[i].stream, cases[i].type, cases[i].flags};
        if (mk__h2_frame_check(&frame) != cases[i].error)
            fail_msg("case %zu", i);
    }
}

/* ── writing ── */

TEST(written)
{
    char to[32];
    assert_ptr_equal(mk__h2_frame_put_head(to, 0x12345, MK__H2_FRAME_PING, 0xfe, 0x7a0b0c0d), to + 9);
    assert_memory_equal(to, "\x01\x23\x45\x06\xfe\x7a\x0b\x0c\x0d", 9);
    assert_ptr_equal(mk__h2_frame_put_setting(to, MK__H2_SETTING_INITIAL_WINDOW_SIZE, 0x80000001), to + 6);
    assert_memory_equal(to, "\0\4\x80\0\0\1", 6);
}
