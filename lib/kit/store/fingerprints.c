// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of fingerprints. An entry is 20 bits of a hash and a time of 12 bits, which advances 256 times while as many
 * hashes are added as the set has places. An entry is valid for 256 such steps; in the 4096 after which the time
 * repeats, 16 times as many hashes come as there are places, so that it has been replaced by then.
 */
#include "store.h"

#include <errno.h>

enum {
    GROUP = 16, /* entries of a cache line */
    PLACES_MIN = 1024,
    STEPS_VALID = 256,
    TIME_BITS = 12,
    TIME_MASK = (1 << TIME_BITS) - 1,
};

int mk__fingerprints_open(struct mk__fingerprints *f)
{
    f->entries = f->map = mk__pages_reserve(MK__FINGERPRINTS_MAX * sizeof(*f->entries));
    return f->map ? 0 : -ENOMEM;
}

void mk__fingerprints_close(struct mk__fingerprints *f)
{
    mk__pages_unmap(f->map, MK__FINGERPRINTS_MAX * sizeof(*f->entries));
}

uint64_t mk__fingerprints_resize(struct mk__fingerprints *f, uint64_t n)
{
    uint64_t groups = PLACES_MIN / GROUP, bytes;
    while (groups * GROUP < n && groups * GROUP < MK__FINGERPRINTS_MAX)
        groups *= 2;
    bytes = groups * GROUP * sizeof(*f->entries);
    uint64_t before = atomic_exchange_explicit(&f->group_mask, groups - 1, memory_order_relaxed) + 1;
    if (groups < before)
        mk__pages_discard((char *)f->map + bytes, before * GROUP * sizeof(*f->entries) - bytes);
    return bytes;
}

static uint64_t get_mask(const struct mk__fingerprints *f)
{
    return atomic_load_explicit(&f->group_mask, memory_order_relaxed);
}

static uint32_t read_time(const struct mk__fingerprints *f)
{
    uint64_t added = atomic_load_explicit(&f->added, memory_order_relaxed);
    return (uint32_t)(added / ((get_mask(f) + 1) * GROUP / STEPS_VALID)) & TIME_MASK;
}

/* Returns the entry of a hash without a time; never 0, which is an empty entry. */
static uint32_t make_print(uint64_t hash)
{
    return ((uint32_t)(hash >> 32) | 1U << 31) & ~(uint32_t)TIME_MASK;
}

static uint32_t get_age(uint32_t entry, uint32_t now)
{
    return (now - entry) & TIME_MASK;
}

static _Atomic uint32_t *get_group(const struct mk__fingerprints *f, uint64_t hash)
{
    return &f->entries[(hash & get_mask(f)) * GROUP];
}

static _Atomic uint32_t *find_entry(const struct mk__fingerprints *f, uint64_t hash, uint32_t now)
{
    _Atomic uint32_t *group = get_group(f, hash);
    uint32_t print = make_print(hash);
    for (unsigned i = 0; i < GROUP; i++) {
        uint32_t entry = atomic_load_explicit(&group[i], memory_order_relaxed);
        if ((entry & ~(uint32_t)TIME_MASK) == print && get_age(entry, now) < STEPS_VALID)
            return &group[i];
    }
    return NULL;
}

/* Returns the entry to replace: an empty one, else the oldest. */
static _Atomic uint32_t *find_oldest(const struct mk__fingerprints *f, uint64_t hash, uint32_t now)
{
    _Atomic uint32_t *group = get_group(f, hash), *oldest = group;
    uint32_t age = 0;
    for (unsigned i = 0; i < GROUP; i++) {
        uint32_t entry = atomic_load_explicit(&group[i], memory_order_relaxed);
        if (!entry)
            return &group[i];
        if (get_age(entry, now) > age) {
            age = get_age(entry, now);
            oldest = &group[i];
        }
    }
    return oldest;
}

bool mk__fingerprints_has(const struct mk__fingerprints *f, uint64_t hash)
{
    return find_entry(f, hash, read_time(f)) != NULL;
}

bool mk__fingerprints_add(struct mk__fingerprints *f, uint64_t hash)
{
    uint32_t now = read_time(f);
    _Atomic uint32_t *entry = find_entry(f, hash, now);
    bool seen = entry != NULL;
    if (!seen) {
        entry = find_oldest(f, hash, now);
        atomic_fetch_add_explicit(&f->added, 1, memory_order_relaxed);
    }
    atomic_store_explicit(entry, make_print(hash) | now, memory_order_relaxed);
    return seen;
}

void mk__fingerprints_remove(struct mk__fingerprints *f, uint64_t hash)
{
    _Atomic uint32_t *entry = find_entry(f, hash, read_time(f));
    if (entry)
        atomic_store_explicit(entry, 0, memory_order_relaxed);
}
