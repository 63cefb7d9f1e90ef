// SPDX-License-Identifier: Apache-2.0
/* Which of several servers gets a request: shares by weight, and the smaller load of two. */
#include "testing.h"

#include "plugins/upstream/servers.h"

enum { ROUNDS = 60000, SERVERS = 6 };

static uint64_t next_random(void)
{
    static uint64_t state = 1;
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Chi-square of what was counted and what the weights say. */
static double get_chi_square(const unsigned *counted, const struct candidate *c, unsigned n)
{
    double sum = 0, chi = 0;
    for (unsigned i = 0; i < n; i++)
        sum += c[i].weight;
    for (unsigned i = 0; i < n; i++) {
        double expected = ROUNDS * c[i].weight / sum;
        if (expected > 0)
            chi += (counted[i] - expected) * (counted[i] - expected) / expected;
        else
            assert_int_equal(counted[i], 0);
    }
    return chi;
}

TEST(without_servers)
{
    const struct candidate none = {.weight = 0};
    struct turn turn = {0}, *turns[] = {&turn};
    assert_int_equal(balance_first(NULL, 0), -1);
    assert_int_equal(balance_first(&none, 1), -1);
    assert_int_equal(balance_least_loaded(NULL, 0, 7), -1);
    assert_int_equal(balance_least_loaded(&none, 1, 7), -1);
    assert_int_equal(balance_hash(NULL, 0, 7), -1);
    assert_int_equal(balance_hash(&none, 1, 7), -1);
    assert_int_equal(balance_round_robin(NULL, NULL, 0), -1);
    assert_int_equal(balance_round_robin(&none, turns, 1), -1);
}

TEST(first_with_a_weight)
{
    const struct candidate c[] = {{.weight = 0}, {.weight = 1, .load = 9}, {.weight = 5}};
    assert_int_equal(balance_first(c, 3), 1);
}

/* Idle servers: the draw decides. 15.1 is the 99 % quantile for five degrees of freedom. */
TEST(shares_of_least_loaded)
{
    static const uint32_t weights[][SERVERS] = {{1, 1, 1, 1, 1, 1}, {2, 1}, {100, 10}, {1, 2, 3, 0, 5, 250}};
    for (size_t row = 0; row < COUNT(weights); row++) {
        struct candidate c[SERVERS] = {{0}};
        unsigned counted[SERVERS] = {0};
        for (unsigned i = 0; i < SERVERS; i++)
            c[i].weight = weights[row][i];
        for (int i = 0; i < ROUNDS; i++)
            counted[balance_least_loaded(c, SERVERS, next_random())]++;
        assert_true(get_chi_square(counted, c, SERVERS) < 15.1);
    }
}

/*
 * Requests that last equally long, so many at a time: the shares are those of the weights, but that a server may have
 * one request more or less.
 */
TEST(shares_under_load)
{
    enum { FEW = 5, MANY = 64, STEPS = 20000 };
    static const unsigned together[] = {FEW, MANY};
    for (size_t row = 0; row < COUNT(together); row++) {
        struct candidate c[] = {{.weight = 10}, {.weight = 5}, {.weight = 1}};
        unsigned counted[3] = {0};
        int under_way[MANY];
        for (unsigned i = 0; i < STEPS; i++) {
            int *slot = &under_way[i % together[row]];
            if (i >= together[row])
                c[*slot].load--;
            *slot = balance_least_loaded(c, 3, next_random());
            c[*slot].load++;
            counted[*slot]++;
        }
        for (unsigned i = 0; i < 3; i++) {
            double share = (double)counted[i] / STEPS, wanted = c[i].weight / 16.0;
            assert_true(share > wanted * 0.8 && share < wanted * 1.25);
        }
    }
}

/* With requests that last for ever the loads become those of the weights. */
TEST(loads_follow_the_weights)
{
    struct candidate c[SERVERS] = {{.weight = 1}, {.weight = 2}, {.weight = 3}, {.weight = 4}, {.weight = 5}};
    for (int i = 0; i < 15000; i++)
        c[balance_least_loaded(c, SERVERS, next_random())].load++;
    for (unsigned i = 0; i < SERVERS; i++) {
        double share = c[i].weight ? (double)c[i].load / (c[i].weight * 1000.0) : 1;
        assert_true(share > 0.97 && share < 1.03);
    }
    assert_int_equal(c[5].load, 0);
}

/* Of two servers it is always the one with less to do, however unlikely its draw is. */
TEST(less_loaded_of_two)
{
    const struct candidate c[] = {{.weight = 1, .load = 0}, {.weight = 255, .load = 255}};
    for (int i = 0; i < 10000; i++)
        assert_int_equal(balance_least_loaded(c, 2, next_random()), 0);
}

TEST(turns)
{
    const struct candidate c[] = {{.weight = 5}, {.weight = 1}, {.weight = 0}, {.weight = 1}};
    struct turn storage[4] = {{0}}, *turns[] = {&storage[0], &storage[1], &storage[2], &storage[3]};
    static const int expected[] = {0, 0, 1, 0, 3, 0, 0};
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < COUNT(expected); i++)
            assert_int_equal(balance_round_robin(c, turns, 4), expected[i]);
}

/* A server that is left out for a while does not get all requests afterwards. */
TEST(turns_after_a_pause)
{
    const struct candidate c[] = {{.weight = 1}, {.weight = 1}};
    struct turn storage[2] = {{0}}, *turns[] = {&storage[0], &storage[1]};
    unsigned counted[2] = {0};
    for (int i = 0; i < 1001; i++)
        assert_int_equal(balance_round_robin(c, turns, 1), 0);
    for (int i = 0; i < 100; i++)
        counted[balance_round_robin(c, turns, 2)]++;
    assert_int_equal(counted[0], 50);
    assert_int_equal(counted[1], 50);
}

static void name_servers(struct candidate *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        c[i].hash = 1000 * (uint64_t)i;
}

TEST(shares_of_hashes)
{
    static const uint32_t weights[][SERVERS] = {{1, 1, 1, 1, 1, 1}, {1, 2, 3, 0, 5, 250}};
    for (size_t row = 0; row < COUNT(weights); row++) {
        struct candidate c[SERVERS];
        unsigned counted[SERVERS] = {0};
        for (unsigned i = 0; i < SERVERS; i++)
            c[i] = (struct candidate){.weight = weights[row][i]};
        name_servers(c, SERVERS);
        for (int i = 0; i < ROUNDS; i++)
            counted[balance_hash(c, SERVERS, next_random())]++;
        assert_true(get_chi_square(counted, c, SERVERS) < 15.1);
    }
}

/* When one of ten leaves, the others keep their keys, and its keys go to all of them. */
TEST(keys_stay)
{
    enum { TEN = 10, LEFT = 4 };
    struct candidate all[TEN] = {{0}}, others[TEN - 1];
    unsigned moved = 0, got[TEN] = {0};
    for (unsigned i = 0; i < TEN; i++)
        all[i].weight = 1;
    name_servers(all, TEN);
    for (unsigned i = 0, k = 0; i < TEN; i++)
        if (i != LEFT)
            others[k++] = all[i];
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t key = next_random();
        int before = balance_hash(all, TEN, key), after = balance_hash(others, TEN - 1, key);
        after += after >= LEFT;
        if (before == LEFT)
            got[after]++;
        else
            assert_int_equal(before, after);
        moved += before == LEFT;
    }
    print_message("%.1f %% of the keys move\n", 100.0 * moved / ROUNDS);
    assert_true(moved < ROUNDS * 12 / 100);
    for (unsigned i = 0; i < TEN; i++)
        assert_true(i == LEFT || got[i] > moved / 12);
}

/* All requests have one key: a server gets a quarter more than its share at most. */
TEST(bounded_load)
{
    struct candidate c[SERVERS] = {{.weight = 1}, {.weight = 1}, {.weight = 2}, {.weight = 1}, {.weight = 1}};
    name_servers(c, SERVERS);
    for (int i = 0; i < 6000; i++)
        c[balance_hash(c, SERVERS, 7)].load++;
    for (unsigned i = 0; i < SERVERS; i++)
        assert_true(c[i].load <= c[i].weight * 1250 + 1);
}
