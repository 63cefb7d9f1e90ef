// SPDX-License-Identifier: Apache-2.0
/*
 * What a server sends to the package redis: replies are the same however the bytes arrive, and stay within the limit.
 */
#include "duda/packages/redis/reader.h"

#include <duda/mem.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 4096 };

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

static const struct duda_api_mem heap = {.alloc = malloc, .realloc = realloc, .free = free};

/* Adds up what a reply is, and checks that it can be read. */
static uint64_t add_reply(uint64_t sum, const redisReply *reply)
{
    sum = sum * 31 + (uint64_t)reply->type * 7 + (uint64_t)reply->integer + reply->elements;
    for (size_t i = 0; reply->str && i <= reply->len; i++)
        sum = sum * 31 + (unsigned char)reply->str[i];
    for (size_t i = 0; i < reply->elements; i++)
        sum = add_reply(sum, reply->element[i]);
    return sum;
}

/* Returns the sum of the replies, and the last result. */
static uint64_t read_all(const uint8_t *data, size_t size, size_t step, int *ret_result)
{
    struct redis_reader r;
    uint64_t sum = 0;
    CHECK(redis_reader_init(&r, LIMIT) == 0);
    *ret_result = 0;
    for (size_t at = 0; at < size && *ret_result >= 0; at += step) {
        size_t n = size - at < step ? size - at : step;
        redisReply *reply;
        CHECK(redis_reader_feed(&r, (const char *)data + at, n) == 0);
        while ((*ret_result = redis_reader_next(&r, &reply)) > 0) {
            sum = add_reply(sum, reply);
            free(reply);
        }
        CHECK(*ret_result == 0 || *r.error);
    }
    redis_reader_release(&r);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int result, again;
    mem = &heap;
    if (size > LIMIT)
        return 0;
    uint64_t sum = read_all(data, size, 1, &result);
    CHECK(read_all(data, size, 7, &again) == sum && (again < 0) == (result < 0)); /* which limit is first may differ */
    CHECK(read_all(data, size, size ? size : 1, &again) == sum && (again < 0) == (result < 0));
    return 0;
}
