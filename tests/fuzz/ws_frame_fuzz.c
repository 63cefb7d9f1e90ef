// SPDX-License-Identifier: Apache-2.0
/*
 * WebSocket frames, as a receiver reads them: heads, order, masking, UTF-8, Close. A head is written as it was read and
 * read with one byte more at a time; payloads in pieces give the same as whole ones.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "websocket/frame.h"

static void expect(bool fine)
{
    if (!fine)
        abort();
}

/* A copy, so that AddressSanitizer sees reads beyond its end. */
static uint8_t *copy(const uint8_t *p, size_t n)
{
    uint8_t *own = malloc(n ? n : 1);
    if (!own)
        abort();
    if (n)
        memcpy(own, p, n);
    return own;
}

static int parse(const uint8_t *p, size_t n, const struct mk__ws_rules *rules, struct mk__ws_head *head)
{
    const char *reason = NULL;
    uint8_t *own = copy(p, n), written[MK__WS_HEAD_BYTES_MAX];
    int result = mk__ws_head_parse(own, n, rules, head, &reason);
    free(own);
    expect((reason != NULL) == (result < 0));
    if (result > 0) {
        expect((size_t)result <= n && result == head->size && head->len <= INT64_MAX);
        expect(mk__ws_head_write(written, head) == head->size && memcmp(written, p, head->size) == 0);
    }
    return result;
}

static int parse_bytes(const uint8_t *p, size_t n, const struct mk__ws_rules *rules, struct mk__ws_head *head)
{
    int result = parse(p, n, rules, head);
    struct mk__ws_head other;
    for (size_t i = 0; i < n && i < MK__WS_HEAD_BYTES_MAX; i++) {
        int part = parse(p, i, rules, &other);
        expect(part == 0 || part == result);
    }
    return result;
}

static void check_text(const uint8_t *p, size_t n, size_t piece)
{
    struct mk__utf8 whole = {}, parts = {};
    bool fine = mk__utf8_feed(&whole, p, n), same = true;
    for (size_t at = 0; at < n && same; at += piece)
        same = mk__utf8_feed(&parts, p + at, n - at < piece ? n - at : piece);
    expect(fine == same && mk__utf8_complete(&whole) == mk__utf8_complete(&parts));
    expect((mk__utf8_prefix(p, n) == n) == mk__utf8_is_valid(p, n));
}

static void check_close(const uint8_t *p, size_t n)
{
    uint8_t written[MK__WS_CONTROL_BYTES_MAX];
    struct mk_str text;
    uint16_t code;
    const char *reason = NULL;
    int result = mk__ws_close_parse(p, n, &code, &text, &reason);
    expect((reason != NULL) == (result < 0));
    if (result == 0)
        expect(mk__ws_close_write(written, code, text) == n && (n == 0 || memcmp(written, p, n) == 0));
}

static void check_payload(const struct mk__ws_head *head, const uint8_t *p, size_t n, size_t piece)
{
    uint8_t *whole = copy(p, n), *parts = copy(p, n);
    mk__ws_mask(whole, whole, n, head->key, 0);
    for (size_t at = 0; at < n; at += piece)
        mk__ws_mask(parts + at, p + at, n - at < piece ? n - at : piece, head->key, at);
    expect(n == 0 || memcmp(whole, parts, n) == 0);
    if (head->opcode == MK__WS_OP_CLOSE && n == head->len)
        check_close(whole, n);
    check_text(whole, n, piece);
    free(whole);
    free(parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk__ws_sequence sequence = {};
    if (size < 2)
        return 0;
    const struct mk__ws_rules rules = {.masked = data[0] & 1,
                                       .rsv1 = data[0] & 2,
                                       .frame_max = data[0] & 4 ? UINT64_MAX : data[0]};
    size_t piece = data[1] % 40 + 1;
    data += 2;
    size -= 2;
    while (size) {
        struct mk__ws_head head;
        const char *reason;
        int used = parse_bytes(data, size, &rules, &head);
        if (used <= 0 || mk__ws_sequence_step(&sequence, &head, &reason) < 0)
            break;
        expect(!sequence.open || sequence.opcode);
        data += used;
        size -= (size_t)used;
        size_t n = head.len < size ? (size_t)head.len : size;
        check_payload(&head, data, n, piece);
        data += n;
        size -= n;
    }
    return 0;
}
