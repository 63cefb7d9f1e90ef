// SPDX-License-Identifier: Apache-2.0
/* The memory of requests, and the ranges of files. */
#include "testing.h"

#include "service_slots.h"

#include <errno.h>

#include "duda/core/request/request.h"
#include "duda/core/request/send_file.h"
#include "duda/core/service/counts.h"

enum { MANY = 100 };

static struct mk_test_slots slots;
static struct service service;

static void init_worker(struct service_worker *w)
{
    memset(w, 0, sizeof(*w));
    mk_test_slots_open(&slots, &service, w);
    counts_open(&service);
    mk_list_init(&w->requests);
    request_pool_init(w);
}

static void close_worker(struct service_worker *w)
{
    request_pool_release(w);
    counts_close(&service);
    mk_test_slots_close(&slots);
}

TEST(requests_are_found_while_they_live)
{
    struct service_worker w;
    struct duda_request *all[MANY], local;
    init_worker(&w);
    for (unsigned i = 0; i < MANY; i++) {
        all[i] = request_pool_get(&w);
        assert_non_null(all[i]);
        assert_ptr_equal(all[i]->worker, &w);
        assert_null(all[i]->req);
    }
    for (unsigned i = 0; i < MANY; i += 2)
        request_pool_put(all[i]);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(request_pool_has(&w, all[i]), i % 2);
    assert_false(request_pool_has(&w, &local));
    assert_false(request_pool_has(&w, NULL));
    assert_false(request_pool_has(&w, (struct duda_request *)((char *)all[1] + 8)));
    for (unsigned i = 1; i < MANY; i += 2)
        request_pool_put(all[i]);
    close_worker(&w);
}

/* A request that has ended is not taken for the next ones. */
TEST(memory_is_used_again_late)
{
    struct service_worker w;
    init_worker(&w);
    const struct duda_request *first = request_pool_get(&w);
    request_pool_put((struct duda_request *)(uintptr_t)first);
    for (unsigned i = 0; i < 7; i++) {
        struct duda_request *dr = request_pool_get(&w);
        assert_ptr_not_equal(dr, first);
        request_pool_put(dr);
    }
    close_worker(&w);
}

TEST(full_slabs_come_back)
{
    struct service_worker w;
    struct duda_request *all[64];
    init_worker(&w);
    for (unsigned i = 0; i < COUNT(all); i++)
        all[i] = request_pool_get(&w);
    const struct duda_request *last = all[0];
    request_pool_put(all[0]);
    all[0] = request_pool_get(&w); /* the only free place of two slabs */
    assert_ptr_equal(all[0], last);
    for (unsigned i = 0; i < COUNT(all); i++)
        request_pool_put(all[i]);
    close_worker(&w);
}

TEST(without_memory)
{
    struct service_worker w;
    init_worker(&w);
    mk__alloc_countdown = 0;
    assert_null(request_pool_get(&w));
    mk__alloc_countdown = -1;
    close_worker(&w);
}

static const struct {
    uint64_t size;
    off_t offset;
    size_t len;
    int result;
    uint64_t bytes;
} ranges[] = {
    {10, 0, 0, 0, 10},       {10, 3, 0, 0, 7},       {10, 3, 7, 0, 7},        {10, 10, 0, 0, 0},
    {10, 11, 0, -ERANGE, 0}, {10, 3, 8, -ERANGE, 0}, {10, -1, 1, -ERANGE, 0}, {10, 1, SIZE_MAX, -ERANGE, 0},
    {0, 0, 0, 0, 0},         {0, 0, 1, -ERANGE, 0},
};

TEST(ranges_of_files)
{
    for (size_t i = 0; i < COUNT(ranges); i++) {
        uint64_t bytes = 0;
        assert_int_equal(send_file_check_range(ranges[i].size, ranges[i].offset, ranges[i].len, &bytes),
                         ranges[i].result);
        assert_int_equal(bytes, ranges[i].bytes);
    }
}
