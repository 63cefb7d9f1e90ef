// SPDX-License-Identifier: Apache-2.0
/* Zones: found again by name while a section holds them, and their counters with them. */
#include "plugins/mandril/mandril.h"
#include "testing.h"

#include <monkey/log.h>

#include <stdio.h>

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

TEST(a_name_finds_its_zone)
{
    struct zones *zones = zones_new();
    struct zone *first = zones_get(zones, MK_STR("a"), 0), *again = zones_get(zones, MK_STR("a"), 0);
    struct zone *other = zones_get(zones, MK_STR("b"), 0), *clients = zones_get(zones, MK_STR("a"), 100);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, other);
    assert_ptr_not_equal(first, clients);
    assert_true(clients->table && !first->table);
    first->decisions = 7;
    zones_put(zones, again);
    assert_ptr_equal(zones_get(zones, MK_STR("a"), 0), first);
    assert_int_equal(first->decisions, 7);
    zones_put(zones, zones_hold(first));
    zones_put(zones, first);
    zones_put(zones, first); /* the last reference */
    first = zones_get(zones, MK_STR("a"), 0);
    assert_int_equal(first->decisions, 0);
    zones_put(zones, first);
    zones_put(zones, other);
    zones_put(zones, clients);
    zones_put(zones, NULL);
    zones_free(zones);
}

static struct zone_client *lock_client(struct zone *zone, uint64_t now_us)
{
    const struct mk_address client = {.family = AF_INET, .bytes = {192, 0, 2, 1}};
    return mk_client_table_lock(zone->table, &client, now_us);
}

/* A user with an earlier time, such as a section without a rate, does not make the client a new one. */
TEST(the_latest_time_counts)
{
    struct zones *zones = zones_new();
    struct zone *zone = zones_get(zones, MK_STR("a"), 100);
    struct zone_client *client = lock_client(zone, 10);
    client->rate.used = 7;
    zone_unlock_client(zone, client, 1000);
    zone_unlock_client(zone, lock_client(zone, 20), 0);
    client = lock_client(zone, 30);
    assert_int_equal(client->rate.used, 7);
    client->requests = 1;
    zone_unlock_client(zone, client, 500);
    client = lock_client(zone, 2000); /* in use */
    assert_int_equal(client->rate.used, 7);
    client->requests = 0;
    zone_unlock_client(zone, client, 2500);
    client = lock_client(zone, 2499);
    assert_int_equal(client->rate.used, 7);
    zone_unlock_client(zone, client, 0);
    client = lock_client(zone, 2500);
    assert_int_equal(client->rate.used, 0);
    assert_int_equal(client->idle_at, 0);
    zone_unlock_client(zone, client, 0);
    zones_put(zones, zone);
    zones_free(zones);
}

enum { MANY = 100000 };

static struct zone *get_nth(struct zones *zones, int i)
{
    char key[32];
    snprintf(key, sizeof(key), "rule host%d.test #%d", i / 100, i % 100);
    return zones_get(zones, mk_str_c(key), 0);
}

/* As many as 1,000 hosts with 100 rules of monkey.conf have. */
TEST(many_zones)
{
    static struct zone *all[MANY];
    struct zones *zones = zones_new();
    for (int i = 0; i < MANY; i++)
        all[i] = get_nth(zones, i);
    for (int i = 0; i < MANY; i++) {
        assert_ptr_equal(get_nth(zones, i), all[i]);
        zones_put(zones, all[i]);
    }
    for (int i = MANY - 1; i >= 0; i--)
        zones_put(zones, all[i]);
    zones_free(zones);
}

static int get_zone(void *ctx)
{
    (void)ctx;
    struct zones *zones = zones_new();
    if (!zones)
        return -1;
    struct zone *zone = zones_get(zones, MK_STR("a"), 10);
    zones_put(zones, zone);
    zones_free(zones);
    return zone ? 0 : -1;
}

TEST(without_memory)
{
    assert_int_equal(mk_test_failing_allocs(get_zone, NULL), 3);
}

/* Ten lines in ten seconds; the next line says how many were left out. */
TEST(lines_have_a_limit)
{
    int fds[2];
    char text[16384];
    assert_int_equal(pipe(fds), 0);
    mk_log_to(fds[1], MK_LOG_INFO);
    struct zones *zones = zones_new();
    struct zone *zone = zones_get(zones, MK_STR("a"), 0);
    struct zone_decision d = {MK_STR("f:1"), MK_STR("name"), MK_STR("drop"), {0}, NULL, MK_LOG_INFO, true, NULL};
    for (int i = 0; i < 25; i++)
        zone_log(zone, &d, 5500);
    d.dry_run = false;
    zone_log(zone, &d, 10000);
    mk_log_to(-1, MK_LOG_INFO);
    close(fds[1]);
    ssize_t n = read(fds[0], text, sizeof(text) - 1);
    close(fds[0]);
    assert_true(n > 0);
    text[n] = '\0';
    unsigned lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, 11);
    assert_non_null(strstr(text, "access: f:1 (name): dry run, would drop unknown; 10 so far\n"));
    assert_non_null(strstr(text, "access: f:1 (name): drop unknown; 26 so far, 15 lines left out\n"));
    zones_put(zones, zone);
    zones_free(zones);
}
