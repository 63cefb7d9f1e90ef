// SPDX-License-Identifier: Apache-2.0
/*
 * Queries and forms: decoded strings end where they should, and encoding them again gives the same pairs.
 */
#include "duda/core/request/urlencoded.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

enum { PAIRS_MAX = 64, TEXT_MAX = 4096 };

static size_t encode(char *out, const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += (size_t)snprintf(out + n, 4, "%%%02x", (unsigned char)*text);
    return n;
}

static size_t encode_pairs(char *out, const struct urlencoded_pair *pairs, int n)
{
    size_t len = 0;
    for (int i = 0; i < n; i++) {
        len += encode(out + len, pairs[i].name);
        out[len++] = '=';
        len += encode(out + len, pairs[i].value);
        out[len++] = '&';
    }
    out[len] = '\0';
    return len;
}

static void check_pairs(char *text, size_t len)
{
    static char again[4 * TEXT_MAX + 4 * PAIRS_MAX];
    struct urlencoded_pair pairs[PAIRS_MAX], same[PAIRS_MAX];
    size_t bound = urlencoded_bound(text, len);
    int n = urlencoded_decode(text, len, pairs, PAIRS_MAX);
    CHECK(n <= PAIRS_MAX && (n < 0 || (size_t)n <= bound));
    if (n < 0)
        return;
    for (int i = 0; i < n; i++) {
        CHECK(strlen(pairs[i].name) + strlen(pairs[i].value) <= len);
    }
    CHECK(urlencoded_decode(again, encode_pairs(again, pairs, n), same, PAIRS_MAX) == n);
    for (int i = 0; i < n; i++)
        CHECK(!strcmp(pairs[i].name, same[i].name) && !strcmp(pairs[i].value, same[i].value));
}

static void check_raw(char *text, size_t len)
{
    struct urlencoded_pair pairs[PAIRS_MAX];
    int n = urlencoded_split(text, len, pairs, PAIRS_MAX);
    CHECK(n >= 0 && n <= PAIRS_MAX);
    for (int i = 0; i < n; i++)
        CHECK(!strpbrk(pairs[i].name, "&=") && !strchr(pairs[i].value, '&'));
}

static void check_number(const char *text)
{
    char again[32];
    long value, same;
    if (urlencoded_number(text, &value) < 0)
        return;
    snprintf(again, sizeof(again), "%ld", value);
    CHECK(urlencoded_number(again, &same) == 0 && same == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > TEXT_MAX)
        return 0;
    char *text = malloc(size + 1);
    CHECK(text);
    for (int round = 0; round < 2; round++) {
        if (size)
            memcpy(text, data, size);
        text[size] = '\0';
        if (!round)
            check_number(text);
        (round ? check_raw : check_pairs)(text, size);
    }
    free(text);
    return 0;
}
