// SPDX-License-Identifier: Apache-2.0
/*
 * How long one lookup takes in a set of 10,000 networks, for addresses that are asked for the first time: prints
 * nanoseconds. Half of the addresses are in a network.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../plugins/mandril/networks.h"

enum { NETWORKS = 10000, LOOKUPS = 4000000 };

static uint64_t random_state = 88172645463325252;

static uint64_t get_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static struct mk_address make_address(bool v6)
{
    struct mk_address address;
    uint64_t bytes[2] = {get_random(), get_random()};
    mk_address_set(&address, v6 ? AF_INET6 : AF_INET, bytes, 0);
    return address;
}

/* Makes networks of 16 to 28 bits, or 32 to 56 for IPv6. */
static struct mk_network make_network(bool v6)
{
    struct mk_network n = {make_address(v6), (uint8_t)(16 + get_random() % 13)};
    n.bits = (uint8_t)(v6 ? n.bits * 2 : n.bits);
    for (unsigned i = n.bits; i < 128; i++)
        n.address.bytes[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
    return n;
}

static double get_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(const char *name, bool v6)
{
    static struct mk_network items[NETWORKS];
    struct mk_address *asked = malloc(LOOKUPS * sizeof(*asked));
    unsigned found = 0;
    if (!asked)
        exit(1);
    for (unsigned i = 0; i < NETWORKS; i++)
        items[i] = make_network(v6);
    for (unsigned i = 0; i < LOOKUPS; i++) {
        asked[i] = make_address(v6);
        const struct mk_network *n = &items[get_random() % NETWORKS];
        if (i % 2)
            memcpy(asked[i].bytes, n->address.bytes, n->bits / 8);
    }
    struct network_set *set = networks_new(items, NETWORKS);
    if (!set)
        exit(1);
    double began = get_seconds();
    for (unsigned i = 0; i < LOOKUPS; i++)
        found += networks_contain(set, &asked[i]);
    double took = get_seconds() - began;
    printf("%s: %zu networks, %.0f ns a lookup (%u of %d found)\n", name, networks_count(set), took / LOOKUPS * 1e9,
           found, LOOKUPS);
    networks_free(set);
    free(asked);
}

int main(void)
{
    measure("IPv4", false);
    measure("IPv6", true);
    return 0;
}
