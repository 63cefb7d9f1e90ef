// SPDX-License-Identifier: Apache-2.0
/* Zones: found again by name while a section holds them, and their counters with them. */
#include "testing.h"

#include <monkey/log.h>

#include <stdio.h>

#include "plugins/mandril/zone.h"

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
    assert_non_null(strstr(text, "mandril: f:1 (name): dry run, would drop unknown; 10 so far\n"));
    assert_non_null(strstr(text, "mandril: f:1 (name): drop unknown; 26 so far, 15 lines left out\n"));
    zones_put(zones, zone);
    zones_free(zones);
}
