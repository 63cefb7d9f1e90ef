// SPDX-License-Identifier: Apache-2.0
/*
 * The code of http/h2/huffman.h. It is canonical: codes of one length are consecutive numbers, in the order of their
 * symbols, and a longer code is greater than a shorter one if both are aligned to the left. So codes of up to eight
 * bits are found by one look into a table, and longer ones, which text hardly has, by their length.
 */
#include "http/h2/huffman.h"

#include <endian.h>
#include <errno.h>

/* RFC 7541 appendix B. */
static const struct {
    uint32_t code;
    uint8_t bits;
} codes[256] = {
    {0x1ff8, 13},    {0x7fffd8, 23},   {0xfffffe2, 28}, {0xfffffe3, 28}, {0xfffffe4, 28},  {0xfffffe5, 28},
    {0xfffffe6, 28}, {0xfffffe7, 28},  {0xfffffe8, 28}, {0xffffea, 24},  {0x3ffffffc, 30}, {0xfffffe9, 28},
    {0xfffffea, 28}, {0x3ffffffd, 30}, {0xfffffeb, 28}, {0xfffffec, 28}, {0xfffffed, 28},  {0xfffffee, 28},
    {0xfffffef, 28}, {0xffffff0, 28},  {0xffffff1, 28}, {0xffffff2, 28}, {0x3ffffffe, 30}, {0xffffff3, 28},
    {0xffffff4, 28}, {0xffffff5, 28},  {0xffffff6, 28}, {0xffffff7, 28}, {0xffffff8, 28},  {0xffffff9, 28},
    {0xffffffa, 28}, {0xffffffb, 28},  {0x14, 6},       {0x3f8, 10},     {0x3f9, 10},      {0xffa, 12},
    {0x1ff9, 13},    {0x15, 6},        {0xf8, 8},       {0x7fa, 11},     {0x3fa, 10},      {0x3fb, 10},
    {0xf9, 8},       {0x7fb, 11},      {0xfa, 8},       {0x16, 6},       {0x17, 6},        {0x18, 6},
    {0x0, 5},        {0x1, 5},         {0x2, 5},        {0x19, 6},       {0x1a, 6},        {0x1b, 6},
    {0x1c, 6},       {0x1d, 6},        {0x1e, 6},       {0x1f, 6},       {0x5c, 7},        {0xfb, 8},
    {0x7ffc, 15},    {0x20, 6},        {0xffb, 12},     {0x3fc, 10},     {0x1ffa, 13},     {0x21, 6},
    {0x5d, 7},       {0x5e, 7},        {0x5f, 7},       {0x60, 7},       {0x61, 7},        {0x62, 7},
    {0x63, 7},       {0x64, 7},        {0x65, 7},       {0x66, 7},       {0x67, 7},        {0x68, 7},
    {0x69, 7},       {0x6a, 7},        {0x6b, 7},       {0x6c, 7},       {0x6d, 7},        {0x6e, 7},
    {0x6f, 7},       {0x70, 7},        {0x71, 7},       {0x72, 7},       {0xfc, 8},        {0x73, 7},
    {0xfd, 8},       {0x1ffb, 13},     {0x7fff0, 19},   {0x1ffc, 13},    {0x3ffc, 14},     {0x22, 6},
    {0x7ffd, 15},    {0x3, 5},         {0x23, 6},       {0x4, 5},        {0x24, 6},        {0x5, 5},
    {0x25, 6},       {0x26, 6},        {0x27, 6},       {0x6, 5},        {0x74, 7},        {0x75, 7},
    {0x28, 6},       {0x29, 6},        {0x2a, 6},       {0x7, 5},        {0x2b, 6},        {0x76, 7},
    {0x2c, 6},       {0x8, 5},         {0x9, 5},        {0x2d, 6},       {0x77, 7},        {0x78, 7},
    {0x79, 7},       {0x7a, 7},        {0x7b, 7},       {0x7ffe, 15},    {0x7fc, 11},      {0x3ffd, 14},
    {0x1ffd, 13},    {0xffffffc, 28},  {0xfffe6, 20},   {0x3fffd2, 22},  {0xfffe7, 20},    {0xfffe8, 20},
    {0x3fffd3, 22},  {0x3fffd4, 22},   {0x3fffd5, 22},  {0x7fffd9, 23},  {0x3fffd6, 22},   {0x7fffda, 23},
    {0x7fffdb, 23},  {0x7fffdc, 23},   {0x7fffdd, 23},  {0x7fffde, 23},  {0xffffeb, 24},   {0x7fffdf, 23},
    {0xffffec, 24},  {0xffffed, 24},   {0x3fffd7, 22},  {0x7fffe0, 23},  {0xffffee, 24},   {0x7fffe1, 23},
    {0x7fffe2, 23},  {0x7fffe3, 23},   {0x7fffe4, 23},  {0x1fffdc, 21},  {0x3fffd8, 22},   {0x7fffe5, 23},
    {0x3fffd9, 22},  {0x7fffe6, 23},   {0x7fffe7, 23},  {0xffffef, 24},  {0x3fffda, 22},   {0x1fffdd, 21},
    {0xfffe9, 20},   {0x3fffdb, 22},   {0x3fffdc, 22},  {0x7fffe8, 23},  {0x7fffe9, 23},   {0x1fffde, 21},
    {0x7fffea, 23},  {0x3fffdd, 22},   {0x3fffde, 22},  {0xfffff0, 24},  {0x1fffdf, 21},   {0x3fffdf, 22},
    {0x7fffeb, 23},  {0x7fffec, 23},   {0x1fffe0, 21},  {0x1fffe1, 21},  {0x3fffe0, 22},   {0x1fffe2, 21},
    {0x7fffed, 23},  {0x3fffe1, 22},   {0x7fffee, 23},  {0x7fffef, 23},  {0xfffea, 20},    {0x3fffe2, 22},
    {0x3fffe3, 22},  {0x3fffe4, 22},   {0x7ffff0, 23},  {0x3fffe5, 22},  {0x3fffe6, 22},   {0x7ffff1, 23},
    {0x3ffffe0, 26}, {0x3ffffe1, 26},  {0xfffeb, 20},   {0x7fff1, 19},   {0x3fffe7, 22},   {0x7ffff2, 23},
    {0x3fffe8, 22},  {0x1ffffec, 25},  {0x3ffffe2, 26}, {0x3ffffe3, 26}, {0x3ffffe4, 26},  {0x7ffffde, 27},
    {0x7ffffdf, 27}, {0x3ffffe5, 26},  {0xfffff1, 24},  {0x1ffffed, 25}, {0x7fff2, 19},    {0x1fffe3, 21},
    {0x3ffffe6, 26}, {0x7ffffe0, 27},  {0x7ffffe1, 27}, {0x3ffffe7, 26}, {0x7ffffe2, 27},  {0xfffff2, 24},
    {0x1fffe4, 21},  {0x1fffe5, 21},   {0x3ffffe8, 26}, {0x3ffffe9, 26}, {0xffffffd, 28},  {0x7ffffe3, 27},
    {0x7ffffe4, 27}, {0x7ffffe5, 27},  {0xfffec, 20},   {0xfffff3, 24},  {0xfffed, 20},    {0x1fffe6, 21},
    {0x3fffe9, 22},  {0x1fffe7, 21},   {0x1fffe8, 21},  {0x7ffff3, 23},  {0x3fffea, 22},   {0x3fffeb, 22},
    {0x1ffffee, 25}, {0x1ffffef, 25},  {0xfffff4, 24},  {0xfffff5, 24},  {0x3ffffea, 26},  {0x7ffff4, 23},
    {0x3ffffeb, 26}, {0x7ffffe6, 27},  {0x3ffffec, 26}, {0x3ffffed, 26}, {0x7ffffe7, 27},  {0x7ffffe8, 27},
    {0x7ffffe9, 27}, {0x7ffffea, 27},  {0x7ffffeb, 27}, {0xffffffe, 28}, {0x7ffffec, 27},  {0x7ffffed, 27},
    {0x7ffffee, 27}, {0x7ffffef, 27},  {0x7fffff0, 27}, {0x3ffffee, 26},
};

/* Codes of up to eight bits, by the first eight bits of the input; bits 0: the code is longer. */
static const struct {
    uint8_t symbol, bits;
} short_codes[256] = {
    [0x00 ... 0x07] = {'0', 5}, [0x08 ... 0x0f] = {'1', 5}, [0x10 ... 0x17] = {'2', 5}, [0x18 ... 0x1f] = {'a', 5},
    [0x20 ... 0x27] = {'c', 5}, [0x28 ... 0x2f] = {'e', 5}, [0x30 ... 0x37] = {'i', 5}, [0x38 ... 0x3f] = {'o', 5},
    [0x40 ... 0x47] = {'s', 5}, [0x48 ... 0x4f] = {'t', 5}, [0x50 ... 0x53] = {' ', 6}, [0x54 ... 0x57] = {'%', 6},
    [0x58 ... 0x5b] = {'-', 6}, [0x5c ... 0x5f] = {'.', 6}, [0x60 ... 0x63] = {'/', 6}, [0x64 ... 0x67] = {'3', 6},
    [0x68 ... 0x6b] = {'4', 6}, [0x6c ... 0x6f] = {'5', 6}, [0x70 ... 0x73] = {'6', 6}, [0x74 ... 0x77] = {'7', 6},
    [0x78 ... 0x7b] = {'8', 6}, [0x7c ... 0x7f] = {'9', 6}, [0x80 ... 0x83] = {'=', 6}, [0x84 ... 0x87] = {'A', 6},
    [0x88 ... 0x8b] = {'_', 6}, [0x8c ... 0x8f] = {'b', 6}, [0x90 ... 0x93] = {'d', 6}, [0x94 ... 0x97] = {'f', 6},
    [0x98 ... 0x9b] = {'g', 6}, [0x9c ... 0x9f] = {'h', 6}, [0xa0 ... 0xa3] = {'l', 6}, [0xa4 ... 0xa7] = {'m', 6},
    [0xa8 ... 0xab] = {'n', 6}, [0xac ... 0xaf] = {'p', 6}, [0xb0 ... 0xb3] = {'r', 6}, [0xb4 ... 0xb7] = {'u', 6},
    [0xb8 ... 0xb9] = {':', 7}, [0xba ... 0xbb] = {'B', 7}, [0xbc ... 0xbd] = {'C', 7}, [0xbe ... 0xbf] = {'D', 7},
    [0xc0 ... 0xc1] = {'E', 7}, [0xc2 ... 0xc3] = {'F', 7}, [0xc4 ... 0xc5] = {'G', 7}, [0xc6 ... 0xc7] = {'H', 7},
    [0xc8 ... 0xc9] = {'I', 7}, [0xca ... 0xcb] = {'J', 7}, [0xcc ... 0xcd] = {'K', 7}, [0xce ... 0xcf] = {'L', 7},
    [0xd0 ... 0xd1] = {'M', 7}, [0xd2 ... 0xd3] = {'N', 7}, [0xd4 ... 0xd5] = {'O', 7}, [0xd6 ... 0xd7] = {'P', 7},
    [0xd8 ... 0xd9] = {'Q', 7}, [0xda ... 0xdb] = {'R', 7}, [0xdc ... 0xdd] = {'S', 7}, [0xde ... 0xdf] = {'T', 7},
    [0xe0 ... 0xe1] = {'U', 7}, [0xe2 ... 0xe3] = {'V', 7}, [0xe4 ... 0xe5] = {'W', 7}, [0xe6 ... 0xe7] = {'Y', 7},
    [0xe8 ... 0xe9] = {'j', 7}, [0xea ... 0xeb] = {'k', 7}, [0xec ... 0xed] = {'q', 7}, [0xee ... 0xef] = {'v', 7},
    [0xf0 ... 0xf1] = {'w', 7}, [0xf2 ... 0xf3] = {'x', 7}, [0xf4 ... 0xf5] = {'y', 7}, [0xf6 ... 0xf7] = {'z', 7},
    [0xf8] = {'&', 8},          [0xf9] = {'*', 8},          [0xfa] = {',', 8},          [0xfb] = {';', 8},
    [0xfc] = {'X', 8},          [0xfd] = {'Z', 8},
};

/* The symbols of longer codes, in the order of their codes. After them is the end-of-string symbol. */
static const uint8_t long_symbols[] = {
    '!', '"', '(', ')', '?', '\'', '+', '|', '#', '>', 0,   '$', '@', '[', ']', '~', '^', '}', '<', '`', '{', '\\', 195,
    208, 128, 130, 131, 162, 184,  194, 224, 226, 153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230,  129,
    132, 133, 134, 136, 146, 154,  156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190, 196, 198,  228,
    232, 233, 1,   135, 137, 138,  139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174,  175,
    180, 182, 183, 188, 191, 197,  231, 239, 9,   142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237, 199, 207,  234,
    235, 192, 193, 200, 201, 202,  205, 210, 213, 218, 219, 238, 240, 242, 243, 255, 203, 204, 211, 212, 214, 221,  222,
    223, 241, 244, 245, 246, 247,  248, 250, 251, 252, 253, 254, 2,   3,   4,   5,   6,   7,   8,   11,  12,  14,   15,
    16,  17,  18,  19,  20,  21,   23,  24,  25,  26,  27,  28,  29,  30,  31,  127, 220, 249, 10,  13,  22,
};

/* For each length: what its codes, aligned to the left of 32 bits, are less than; the first code and its symbol. */
static const struct {
    uint32_t limit, first;
    uint8_t bits, symbol;
} long_codes[] = {
    {0xff400000, 0x3f8, 10, 0},       {0xffa00000, 0x7fa, 11, 5},        {0xffc00000, 0xffa, 12, 8},
    {0xfff00000, 0x1ff8, 13, 10},     {0xfff80000, 0x3ffc, 14, 16},      {0xfffe0000, 0x7ffc, 15, 18},
    {0xfffe6000, 0x7fff0, 19, 21},    {0xfffee000, 0xfffe6, 20, 24},     {0xffff4800, 0x1fffdc, 21, 32},
    {0xffffb000, 0x3fffd2, 22, 45},   {0xffffea00, 0x7fffd8, 23, 71},    {0xfffff600, 0xffffea, 24, 100},
    {0xfffff800, 0x1ffffec, 25, 112}, {0xfffffbc0, 0x3ffffe0, 26, 116},  {0xfffffe20, 0x7ffffde, 27, 131},
    {0xfffffff0, 0xfffffe2, 28, 150}, {0xffffffff, 0x3ffffffc, 30, 179},
};

size_t mk__huffman_encoded_len(struct mk_str s)
{
    size_t bits = 0;
    for (size_t i = 0; i < s.len; i++)
        bits += codes[(uint8_t)s.p[i]].bits;
    return (bits + 7) / 8;
}

char *mk__huffman_encode(char *to, struct mk_str s)
{
    uint64_t pending = 0; /* of which the last `n` bits are not written yet */
    unsigned n = 0;
    for (size_t i = 0; i < s.len; i++) {
        uint8_t symbol = (uint8_t)s.p[i];
        pending = pending << codes[symbol].bits | codes[symbol].code;
        for (n += codes[symbol].bits; n >= 8;) {
            n -= 8;
            *to++ = (char)(pending >> n);
        }
    }
    if (n) /* the first bits of the end-of-string symbol are ones */
        *to++ = (char)(pending << (8 - n) | 0xff >> n);
    return to;
}

/* The input: `n` bits of it are at the left of `word`, followed by zeros; the rest is at `at`. */
struct bits {
    uint64_t word;
    unsigned n;
    const uint8_t *at, *end;
};

static void refill_bits(struct bits *b)
{
    uint64_t next;
    uint32_t first, last;
    const size_t left = (size_t)(b->end - b->at);
    if (left < sizeof(next) && left >= sizeof(first) && !b->n) { /* a short string: some bytes are loaded twice */
        memcpy(&first, b->at, sizeof(first));
        memcpy(&last, b->end - sizeof(last), sizeof(last));
        b->word = (uint64_t)be32toh(first) << 32 | (uint64_t)be32toh(last) << 8 * (sizeof(next) - left);
        b->at = b->end;
        b->n = (unsigned)(8 * left);
    }
    if (left >= sizeof(next)) {
        memcpy(&next, b->at, sizeof(next));
        unsigned bytes = (63 - b->n) / 8;
        b->word |= be64toh(next) >> b->n & ~(UINT64_MAX >> (b->n + 8 * bytes));
        b->at += bytes;
        b->n += 8 * bytes;
    }
    for (; b->n <= 56 && b->at < b->end; b->n += 8)
        b->word |= (uint64_t)*b->at++ << (56 - b->n);
}

/* Finds the long code with which the input begins. Returns its row. */
static unsigned find_long_code(const struct bits *b)
{
    unsigned i = 0;
    while (i + 1 < MK_COUNT_OF(long_codes) && (uint32_t)(b->word >> 32) >= long_codes[i].limit)
        i++;
    return i;
}

/* Takes the next symbol. Returns false if the input ends before, or with the end-of-string symbol. */
static bool take_symbol(struct bits *b, uint8_t *ret_symbol)
{
    unsigned bits = short_codes[b->word >> 56].bits;
    *ret_symbol = short_codes[b->word >> 56].symbol;
    if (MK_UNLIKELY(!bits)) {
        unsigned row = find_long_code(b);
        bits = long_codes[row].bits;
        size_t symbol = long_codes[row].symbol + (b->word >> (64 - bits)) - long_codes[row].first;
        if (symbol >= sizeof(long_symbols))
            return false;
        *ret_symbol = long_symbols[symbol];
    }
    if (bits > b->n)
        return false;
    b->word <<= bits;
    b->n -= bits;
    return true;
}

ssize_t mk__huffman_decode(struct mk_str in, char *to, size_t size)
{
    const uint8_t *at = (const uint8_t *)in.p;
    struct bits b = {.at = at, .end = at + in.len};
    size_t len = 0;
    uint8_t symbol;
    for (;; len++) {
        if (b.n < 30) /* of the longest code */
            refill_bits(&b);
        if (!take_symbol(&b, &symbol))
            break;
        if (len < size)
            to[len] = (char)symbol;
    }
    bool is_padding = b.n < 8 && (b.word | UINT64_MAX >> b.n) == UINT64_MAX;
    return is_padding ? (ssize_t)len : -EINVAL;
}
