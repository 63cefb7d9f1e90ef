// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses servers (balance.h).
 */
#include "balance.h"

static uint64_t add_weights(const struct candidate *c, unsigned n)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += c[i].weight;
    return sum;
}

/* Returns the candidate at a place on the line of all weights, without those of `left_out`. */
static int find_at(const struct candidate *c, unsigned n, uint64_t place, int left_out)
{
    for (unsigned i = 0; i < n; i++) {
        if ((int)i == left_out)
            continue;
        if (place < c[i].weight)
            return (int)i;
        place -= c[i].weight;
    }
    return -1;
}

/*
 * Tells whether `a`, with one more request, has no more to do for its weight than `b` has now. While servers are idle
 * the draw alone decides, so that their shares are those of the weights.
 */
static bool is_less_loaded(const struct candidate *a, const struct candidate *b)
{
    return ((uint64_t)a->load + 1) * b->weight <= (uint64_t)b->load * a->weight;
}

int balance_least_loaded(const struct candidate *c, unsigned n, uint64_t random)
{
    uint64_t sum = add_weights(c, n);
    if (!sum)
        return -1;
    int first = find_at(c, n, (random & UINT32_MAX) % sum, -1); /* each is drawn by its weight */
    uint64_t rest = sum - c[first].weight;
    int second = rest ? find_at(c, n, (random >> 32) % rest, first) : -1;
    return second >= 0 && is_less_loaded(&c[second], &c[first]) ? second : first;
}

int balance_first(const struct candidate *c, unsigned n)
{
    return find_at(c, n, 0, -1);
}

static uint64_t mix_bits(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A server of weight 3 takes part three times. */
static uint64_t get_score(const struct candidate *c, uint64_t key)
{
    uint64_t best = 0;
    for (uint32_t i = 0; i < c->weight; i++) {
        uint64_t score = mix_bits(key ^ mix_bits(c->hash + i));
        best = score > best ? score : best;
    }
    return best;
}

int balance_hash(const struct candidate *c, unsigned n, uint64_t key)
{
    uint64_t weights = add_weights(c, n), loads = 1, best = 0;
    int chosen = -1;
    for (unsigned i = 0; i < n; i++)
        loads += c[i].load;
    for (unsigned i = 0; i < n; i++) {
        if (!c[i].weight || (uint64_t)c[i].load * 4 * weights >= loads * 5 * c[i].weight)
            continue;
        uint64_t score = get_score(&c[i], key);
        if (chosen < 0 || score > best) {
            chosen = (int)i;
            best = score;
        }
    }
    return chosen;
}

/* Each gets credit by its weight; the one with the most pays for all. */
int balance_round_robin(const struct candidate *c, struct turn *const *turns, unsigned n)
{
    int best = -1;
    for (unsigned i = 0; i < n; i++) {
        turns[i]->credit += c[i].weight;
        if (c[i].weight && (best < 0 || turns[i]->credit > turns[best]->credit))
            best = (int)i;
    }
    if (best >= 0)
        turns[best]->credit -= (int64_t)add_weights(c, n);
    return best;
}
