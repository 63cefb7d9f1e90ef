// SPDX-License-Identifier: Apache-2.0
/*
 * The paths that are asked for: their requests, prepared once, what their answers must be, and the order in which they
 * are picked. They live as long as the process and are only read by the threads.
 */
#ifndef WR_LOAD_PATHS_H
#define WR_LOAD_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include <monkey/base/arena.h>

enum {
    PATH_HASH_BYTES = 32, /* SHA-256 */
    PATHS_MAX = 10 * 1000 * 1000,
};

struct path {
    struct mk_str request; /* all bytes of it; shared by all threads */
    int64_t length;        /* of the body of an answer; -1: any */
    int status;            /* of an answer; 0: any below 400 */
    bool has_hash;
    unsigned char hash[PATH_HASH_BYTES];
};

enum pick { PICK_SEQUENCE, PICK_UNIFORM, PICK_ZIPF };

struct paths {
    struct path *list;
    uint32_t n;
    bool has_hashes;
    enum pick pick;
    struct alias *aliases; /* for PICK_ZIPF */
};

/* One side of a slot of an alias table (Walker): another path is picked where a random number is at least `limit`. */
struct alias {
    uint32_t limit, other;
};

/* The state of the order in a thread. */
struct picker {
    uint64_t random;
    uint64_t next, step; /* of PICK_SEQUENCE */
};

/* What all requests have in common. */
struct request_form {
    struct mk_str method, host, headers, body; /* `headers`: whole lines */
    bool close;
    int status;     /* of answers where the path has none; 0: any below 400 */
    int64_t length; /* likewise; -1: any */
};

/* Adds a path with its request. Returns 0 or -ENOMEM. */
int paths_add(struct paths *paths, struct mk_arena *arena, const struct request_form *form, struct mk_str path);

/*
 * Adds the paths of a file's text, one a line: PATH [STATUS [LENGTH [SHA256]]], `-` for any. Empty lines and lines that
 * begin with # are ignored.
 * Returns 0, -ENOMEM, or -EINVAL with the line and a phrase.
 */
int paths_parse(struct paths *paths, struct mk_arena *arena, const struct request_form *form, struct mk_str text,
                unsigned *ret_line, const char **ret_error);

/* Prepares the picking; the first path is the most popular one of PICK_ZIPF. Returns 0 or -ENOMEM. */
int paths_prepare(struct paths *paths, struct mk_arena *arena, enum pick pick, double exponent);

/* Begins the order of one of several threads. */
void picker_init(struct picker *p, uint64_t seed, unsigned thread, unsigned threads);

/* Returns a random number (splitmix64). */
static inline uint64_t picker_random(struct picker *p)
{
    uint64_t z = p->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* Returns the index of the next path. */
static inline uint32_t paths_pick(const struct paths *paths, struct picker *p)
{
    if (paths->n == 1)
        return 0;
    if (paths->pick == PICK_SEQUENCE) {
        uint64_t at = p->next;
        p->next = (at + p->step) % paths->n;
        return (uint32_t)at;
    }
    uint64_t r = picker_random(p);
    uint32_t at = (uint32_t)(((r >> 32) * paths->n) >> 32);
    if (paths->pick == PICK_UNIFORM)
        return at;
    return (uint32_t)r < paths->aliases[at].limit ? at : paths->aliases[at].other;
}

#endif
