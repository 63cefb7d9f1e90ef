// SPDX-License-Identifier: Apache-2.0
/* Token buckets: no token more and none less than the rate gives, with a clock that the test moves. */
#include "testing.h"

#include "plugins/mandril/bucket.h"

TEST(burst_then_rate)
{
    struct bucket b = {0};
    struct bucket_rate rate = bucket_request_rate(10, 1, 3);
    uint64_t now = 5000000;
    for (int i = 0; i < 3; i++)
        assert_true(bucket_take(&b, &rate, 1, now));
    assert_false(bucket_take(&b, &rate, 1, now));
    assert_int_equal(bucket_wait_us(&b, &rate, 1), 100000);
    assert_false(bucket_take(&b, &rate, 1, now + 99999));
    assert_true(bucket_take(&b, &rate, 1, now + 100000));
    assert_false(bucket_take(&b, &rate, 1, now + 100000));
    assert_int_equal(bucket_full_at(&b, &rate), now + 400000);
    assert_int_equal(bucket_count(&b, &rate, now + 400000), 3);
    assert_int_equal(bucket_count(&b, &rate, UINT64_MAX / 2), 3);
}

/* A third of a microsecond is lost nowhere: 7 requests in an hour, asked at odd times. */
TEST(long_run_is_exact)
{
    struct bucket b = {0};
    struct bucket_rate rate = bucket_request_rate(7, 3600, 1);
    uint64_t taken = 0, end = 100ULL * 3600 * 1000000;
    for (uint64_t now = 0; now < end; now += 333337)
        taken += bucket_take(&b, &rate, 1, now);
    assert_in_range(taken, 699, 701);
}

TEST(time_that_goes_back)
{
    struct bucket b = {0};
    struct bucket_rate rate = bucket_request_rate(1, 1, 2);
    assert_true(bucket_take(&b, &rate, 1, 2000000));
    assert_true(bucket_take(&b, &rate, 1, 1999990));
    assert_false(bucket_take(&b, &rate, 1, 2000000));
    assert_true(bucket_take(&b, &rate, 1, 3000000));
}

TEST(other_rate_after_a_reload)
{
    struct bucket b = {0};
    struct bucket_rate slow = bucket_request_rate(5, 86400, 5), wide = bucket_request_rate(8, 86400, 8),
                       tight = bucket_request_rate(2, 86400, 2);
    for (int i = 0; i < 5; i++)
        assert_true(bucket_take(&b, &slow, 1, 1000));
    assert_int_equal(bucket_count(&b, &wide, 1000), 3);
    assert_int_equal(bucket_count(&b, &tight, 1000), 0);
    assert_false(bucket_take(&b, &tight, 1, 1000));
}

TEST(bytes)
{
    struct bucket b = {0};
    struct bucket_rate rate = bucket_byte_rate(100000);
    uint64_t sent = 0;
    for (uint64_t now = 0; now <= 10000000; now += 1000) {
        uint64_t n = bucket_count(&b, &rate, now);
        n = n < 1500 ? n : 1500;
        assert_true(bucket_take(&b, &rate, n, now));
        bucket_put(&b, &rate, n / 2);
        sent += n - n / 2;
    }
    assert_in_range(sent, 1000000, 1010000 + 100);
    bucket_put(&b, &rate, 1000000);
    assert_int_equal(b.used, 0);
}

TEST(extremes)
{
    struct bucket b = {0};
    struct bucket_rate rate = bucket_request_rate(BUCKET_REQUESTS_MAX, 1, BUCKET_REQUESTS_MAX);
    assert_true(bucket_take(&b, &rate, BUCKET_REQUESTS_MAX, 1));
    assert_int_equal(bucket_count(&b, &rate, 2), 1);
    assert_int_equal(bucket_count(&b, &rate, 1000001), BUCKET_REQUESTS_MAX);
    b = (struct bucket){0};
    rate = bucket_byte_rate(BUCKET_BYTES_MAX);
    assert_true(bucket_take(&b, &rate, rate.capacity / rate.token, 1));
    assert_int_equal(bucket_count(&b, &rate, 1), 0);
    rate = bucket_byte_rate(1);
    assert_true(rate.capacity >= 2048 * BUCKET_BYTE);
}
