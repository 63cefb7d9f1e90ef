// SPDX-License-Identifier: Apache-2.0
/* The memory of services and workers with the slots of features, and the order of hooks. */
#include "testing.h"

#include <errno.h>

#include "duda/core/service/service.h"

static char trail[16];

static void note(char letter)
{
    size_t n = strlen(trail);
    assert_true(n + 1 < sizeof(trail));
    trail[n] = letter;
}

static void bind_first(struct service *s)
{
    (void)s;
    note('a');
}

static void bind_last(struct service *s)
{
    (void)s;
    note('z');
}

static int init_first(struct service *s)
{
    (void)s;
    note('1');
    return -ENOSPC;
}

static int init_middle(struct service *s)
{
    (void)s;
    note('2');
    return -ENOMEM;
}

static int init_last(struct service *s)
{
    (void)s;
    note('3');
    return 0;
}

/* The sizes of slots, of which each kind has other ones. */
static const struct feature rows[FEATURES] = {
    [0] = {.service_bytes = 1, .worker_bytes = 40, .service_bind = bind_first, .service_stop = bind_first},
    [1] = {.service_bytes = 17},
    [2] = {.worker_bytes = 1},
    [FEATURES - 1] = {.service_bytes = 32, .worker_bytes = 3, .service_bind = bind_last, .service_stop = bind_last},
};

static bool is_filled(const unsigned char *p, size_t n, unsigned char byte)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != byte)
            return false;
    return true;
}

/* Each slot is zeroed and aligned, and has bytes of its own. */
static void check_slots(void *const *slots, bool is_worker)
{
    for (unsigned i = 0; i < FEATURES; i++) {
        size_t bytes = is_worker ? rows[i].worker_bytes : rows[i].service_bytes;
        assert_int_equal(slots[i] != NULL, bytes > 0);
        if (!bytes)
            continue;
        assert_int_equal((uintptr_t)slots[i] % 16, 0);
        assert_true(is_filled(slots[i], bytes, 0));
        memset(slots[i], (int)i + 1, bytes);
    }
    for (unsigned i = 0; i < FEATURES; i++) {
        size_t bytes = is_worker ? rows[i].worker_bytes : rows[i].service_bytes;
        assert_true(is_filled(slots[i], bytes, (unsigned char)(i + 1)));
    }
}

TEST(slots)
{
    struct service *s = service_new(rows);
    assert_non_null(s);
    assert_ptr_equal(s->features, rows);
    struct service_worker *worker = service_worker_new(s);
    assert_non_null(worker);
    assert_ptr_equal(worker->service, s);
    check_slots(s->slots, false);
    check_slots(worker->slots, true);
    assert_ptr_equal(s->features, rows);
    assert_ptr_equal(worker->service, s);
    service_worker_free(worker);
    service_free(s);
}

TEST(what_was_begun_last_ends_first)
{
    memset(trail, 0, sizeof(trail));
    FEATURES_BEGIN(rows, service_bind, NULL);
    assert_string_equal(trail, "za");
    FEATURES_CALL(rows, service_stop, NULL);
    assert_string_equal(trail, "zaaz");
    FEATURES_CALL(rows, service_release, NULL); /* no row has it */
}

/* All are released at the end, so all have to be called. */
TEST(a_row_that_fails_ends_no_others)
{
    const struct feature fails[FEATURES] = {
        [0] = {.service_init = init_first}, [2] = {.service_init = init_middle}, [4] = {.service_init = init_last}};
    int result = 0;
    memset(trail, 0, sizeof(trail));
    FEATURES_INIT(result, fails, service_init, NULL);
    assert_string_equal(trail, "321");
    assert_int_equal(result, -ENOMEM);
}

/* A bit of a request leads to a row that ends it. */
TEST(each_feature_has_a_row)
{
    for (unsigned i = 0; i < FEATURES; i++) {
        const struct feature *row = &features[i];
        bool has_hook = row->request_end || row->service_init || row->worker_init || row->worker_stop;
        assert_true(has_hook || row->service_bytes || row->worker_bytes);
        assert_true(!row->request_retire || row->request_end);
        assert_int_equal(!row->threads_join, !row->threads_stop);
        assert_int_equal(!row->threads_detach, !row->threads_stop);
    }
}

TEST(without_memory)
{
    mk__alloc_countdown = 0;
    assert_null(service_new(rows));
    mk__alloc_countdown = -1;
    struct service *s = service_new(rows);
    mk__alloc_countdown = 0;
    assert_null(service_worker_new(s));
    mk__alloc_countdown = -1;
    service_free(s);
}
