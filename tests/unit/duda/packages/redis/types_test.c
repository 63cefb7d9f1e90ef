// SPDX-License-Identifier: Apache-2.0
/* The types of the package redis are those of hiredis 0.14: a service may include its headers, or do without them. */
#include <hiredis/async.h>

#include "testing.h"

#include <stddef.h>

/* The header of the package once more, without those of hiredis, by other names. */
#undef __HIREDIS_H
#undef __HIREDIS_ASYNC_H
#define redisReply ours_redisReply
#define redisContext ours_redisContext
#define redisAsyncContext ours_redisAsyncContext
#define redisCallbackFn ours_redisCallbackFn
#define redisConnectCallback ours_redisConnectCallback
#define redisDisconnectCallback ours_redisDisconnectCallback
#include <duda/packages/redis/redis.h>
#undef redisReply
#undef redisContext
#undef redisAsyncContext

#define SAME(type, field) assert_int_equal(offsetof(struct type, field), offsetof(struct ours_##type, field))

TEST(types)
{
    if (HIREDIS_MAJOR)
        skip();
    assert_int_equal(sizeof(redisReply), sizeof(ours_redisReply));
    SAME(redisReply, integer);
    SAME(redisReply, len);
    SAME(redisReply, str);
    SAME(redisReply, elements);
    SAME(redisReply, element);
    assert_int_equal(sizeof(redisContext), sizeof(ours_redisContext));
    SAME(redisContext, errstr);
    SAME(redisContext, fd);
    SAME(redisAsyncContext, err);
    SAME(redisAsyncContext, errstr);
    SAME(redisAsyncContext, data);
}
