// SPDX-License-Identifier: Apache-2.0
/*
 * The shares of Balance Hash with the hashes that servers and requests have: those of lines that differ in few bytes,
 * and of clients and paths that follow one another.
 */
#include "plugins/upstream/group_fixture.h"

#include "plugins/upstream/conf.h"

#include "http/request.h"

#include <stdio.h>

enum { TEN = 10, CLIENTS = 20000, TEXT_BYTES = 32 };

/* The 99.9 % quantile for nine degrees of freedom. What is hashed is the same in each run. */
static const double CHI_SQUARE_MAX = 27.9;

static const char *const patterns[] = {"10.0.0.%u:8080", "127.0.0.1:%u", "[2001:db8::%x]:80", "unix:/run/app%u.sock"};
static const uint32_t weights[][TEN] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 20},
};

static struct server_line ten_lines[TEN];
static char line_texts[TEN][TEXT_BYTES], path[TEXT_BYTES];
static struct mk_request req = {.client_known = true};

/* In place of the group of the fixture. */
static void make_group(const char *pattern, const uint32_t *of_lines)
{
    for (unsigned i = 0; i < TEN; i++) {
        snprintf(line_texts[i], TEXT_BYTES, pattern, i + 1);
        ten_lines[i] = (struct server_line){.name = mk_str_c(line_texts[i]), .weight = of_lines[i]};
    }
    group_free(group);
    conf.servers = (struct server_lines){ten_lines, TEN};
    conf.balance = UPSTREAM_HASH;
    group = group_make(&conf, &group_names);
    assert_non_null(group);
}

static void set_ipv4(unsigned n)
{
    const uint8_t bytes[4] = {192, 168, (uint8_t)(n >> 8), (uint8_t)n};
    mk_address_set(&req.client, AF_INET, bytes, (uint16_t)(n * 7)); /* whose port does not count */
}

static void set_ipv6(unsigned n)
{
    const uint8_t bytes[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, (uint8_t)(n >> 8), (uint8_t)n, [15] = 1};
    mk_address_set(&req.client, AF_INET6, bytes, 0);
}

static void set_path(unsigned n)
{
    snprintf(path, sizeof(path), "/user/%u", n);
    req.path = mk_str_c(path);
}

static const struct {
    void (*set)(unsigned n);
    enum hash_by_kind by;
} values[] = {{set_ipv4, HASH_BY_CLIENT}, {set_ipv6, HASH_BY_CLIENT}, {set_path, HASH_BY_PATH}};

/* The server that one of the requests gets, while none is loaded. */
static unsigned choose_for(size_t row, unsigned n)
{
    struct hash_by by = {.kind = (uint8_t)values[row].by};
    struct mk_upstream_tries tries = {0};
    struct mk_upstream_wait wait = {.fn = NULL};
    struct mk_upstream_server *server;
    uint64_t key;
    values[row].set(n);
    assert_true(hash_by_get(&by, &req, &key));
    const struct preference preference = {.key = &key};
    assert_int_equal(group_choose(group, &loop, &preference, &tries, &wait, &server), 0);
    int index = index_of(server);
    server_drop_load(group_members(group)->items[index].server);
    return (unsigned)index;
}

static double get_chi_square(size_t row, const uint32_t *of_lines)
{
    unsigned counted[TEN] = {0};
    double sum = 0, chi = 0;
    for (unsigned n = 0; n < CLIENTS; n++)
        counted[choose_for(row, n)]++;
    for (unsigned i = 0; i < TEN; i++)
        sum += of_lines[i];
    for (unsigned i = 0; i < TEN; i++) {
        double expected = CLIENTS * of_lines[i] / sum;
        chi += (counted[i] - expected) * (counted[i] - expected) / expected;
    }
    return chi;
}

TEST(shares_are_those_of_the_weights)
{
    double most = 0;
    open_group(0);
    for (size_t p = 0; p < COUNT(patterns); p++)
        for (size_t w = 0; w < COUNT(weights); w++) {
            make_group(patterns[p], weights[w]);
            for (size_t row = 0; row < COUNT(values); row++) {
                double chi = get_chi_square(row, weights[w]);
                if (chi > CHI_SQUARE_MAX)
                    fail_msg("%s, weights %zu, values %zu: chi-square %.1f", patterns[p], w, row, chi);
                most = chi > most ? chi : most;
            }
        }
    close_group();
    print_message("the largest chi-square is %.1f\n", most);
}
