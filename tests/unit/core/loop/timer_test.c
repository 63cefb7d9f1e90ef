// SPDX-License-Identifier: Apache-2.0
/* The timing wheel against a naive model: a list of deadlines that is searched. */
#include "testing.h"

#include <stdlib.h>

#include "loop/timer.h"

static struct mk__wheel wheel;

struct probe {
    struct mk_timer timer;
    uint64_t deadline_ms; /* the model's; 0 = not armed */
    unsigned fired;
    uint64_t fired_ms;
};

static void on_fire(struct mk_timer *timer)
{
    struct probe *p = MK_CONTAINER_OF(timer, struct probe, timer);
    p->fired++;
    p->fired_ms = wheel.now_ms;
}

static void init(struct probe *p)
{
    *p = (struct probe){.timer.fn = on_fire};
    mk_list_init(&p->timer.node);
}

static void arm(struct probe *p, uint64_t deadline_ms)
{
    mk__wheel_arm(&wheel, &p->timer, deadline_ms);
    p->deadline_ms = deadline_ms;
}

/* Lets the wheel run as a loop would: it is advanced whenever it wants to be. Returns how often that was. */
static unsigned run_to(uint64_t to_ms)
{
    unsigned wakeups = 0;
    for (uint64_t next; (next = mk__wheel_next_ms(&wheel)) <= to_ms; wakeups++) {
        assert_true(next > wheel.now_ms);
        mk__wheel_advance(&wheel, next);
    }
    mk__wheel_advance(&wheel, to_ms);
    return wakeups;
}

#define HOUR (3600ull * 1000)
#define REACH (1ull << 30)

static const uint64_t delays[] = {
    1,         2,
    62,        63,
    64,        65,
    127,       128,
    4095,      4096,
    4097,      5000,
    15000,     262143,
    262144,    262145,
    16777215,  16777216,
    HOUR,      24 * HOUR,
    REACH - 2, REACH - 1,
    REACH,     REACH + 1,
    2 * REACH, 5 * REACH + 12345,
};

static const uint64_t starts[] = {0, 1, 63, 64, 1000, 4095, 4096, 262143, 16777215, REACH - 1, REACH, 123456789012};

TEST(fires_to_the_millisecond)
{
    struct probe p;
    for (size_t s = 0; s < COUNT(starts); s++) {
        for (size_t d = 0; d < COUNT(delays); d++) {
            uint64_t at = starts[s] + delays[d];
            mk__wheel_init(&wheel, starts[s]);
            init(&p);
            arm(&p, at);
            assert_true(run_to(at - 1) <= 8 + delays[d] / REACH);
            assert_int_equal(p.fired, 0);
            run_to(at);
            assert_int_equal(p.fired, 1);
            assert_int_equal(p.fired_ms, at);
            assert_true(mk_list_empty(&p.timer.node));
            assert_true(mk__wheel_next_ms(&wheel) == UINT64_MAX);
        }
    }
}

TEST(one_leap_fires_at_the_right_moments)
{
    static struct probe p[COUNT(delays)];
    mk__wheel_init(&wheel, 4095);
    for (size_t i = 0; i < COUNT(delays); i++) {
        init(&p[i]);
        arm(&p[i], 4095 + delays[i]);
    }
    mk__wheel_advance(&wheel, 10 * REACH);
    for (size_t i = 0; i < COUNT(delays); i++) {
        assert_int_equal(p[i].fired, 1);
        assert_int_equal(p[i].fired_ms, 4095 + delays[i]);
    }
    assert_int_equal(wheel.now_ms, 10 * REACH);
}

TEST(what_is_due_fires_next)
{
    struct probe p;
    mk__wheel_init(&wheel, 100);
    init(&p);
    arm(&p, 50); /* in the past */
    mk__wheel_advance(&wheel, 100);
    assert_int_equal(p.fired, 0);
    mk__wheel_advance(&wheel, 101);
    assert_int_equal(p.fired, 1);
    mk__wheel_advance(&wheel, 90); /* a clock that goes back is not believed */
    assert_int_equal(wheel.now_ms, 101);
}

TEST(later_deadlines_only_write_a_number)
{
    struct probe p;
    mk__wheel_init(&wheel, 1000);
    init(&p);
    arm(&p, 6000);
    struct mk_list before = p.timer.node;
    for (uint64_t at = 6000; at <= 9000; at += 100) {
        arm(&p, at);
        assert_memory_equal(&p.timer.node, &before, sizeof(before));
    }
    assert_int_equal(p.timer.slot_ms, 6000);
    run_to(8999);
    assert_int_equal(p.fired, 0);
    run_to(9000);
    assert_int_equal(p.fired, 1);
    assert_int_equal(p.fired_ms, 9000);
}

TEST(earlier_deadlines_move_it)
{
    struct probe p;
    mk__wheel_init(&wheel, 1000);
    init(&p);
    arm(&p, 100000);
    arm(&p, 1500);
    arm(&p, 1200);
    arm(&p, 1300);
    run_to(1299);
    assert_int_equal(p.fired, 0);
    run_to(200000);
    assert_int_equal(p.fired, 1);
    assert_int_equal(p.fired_ms, 1300);
}

TEST(cancelled_timers_stay_silent)
{
    struct probe p[3];
    mk__wheel_init(&wheel, 1);
    for (int i = 0; i < 3; i++) {
        init(&p[i]);
        arm(&p[i], 500);
    }
    mk_list_del(&p[1].timer.node);
    mk_list_del(&p[1].timer.node); /* twice is fine */
    run_to(1000);
    assert_int_equal(p[0].fired + p[1].fired + p[2].fired, 2);
    assert_int_equal(p[1].fired, 0);
    arm(&p[1], 2000);
    run_to(2000);
    assert_int_equal(p[1].fired, 1);
}

/* A timer whose callback does things to the others. */
struct meddler {
    struct probe own;
    struct probe *cancels, *arms;
    uint64_t arms_at;
    unsigned rearms;
};

static void on_meddle(struct mk_timer *timer)
{
    struct meddler *m = MK_CONTAINER_OF(timer, struct meddler, own.timer);
    on_fire(timer);
    if (m->cancels)
        mk_list_del(&m->cancels->timer.node);
    if (m->arms)
        arm(m->arms, m->arms_at);
    if (m->rearms) {
        m->rearms--;
        arm(&m->own, wheel.now_ms + 10);
    }
}

TEST(callbacks_may_arm_and_cancel)
{
    struct probe same_slot, next;
    struct meddler m = {.cancels = &same_slot, .arms = &next, .arms_at = 150, .rearms = 3};
    mk__wheel_init(&wheel, 10);
    init(&m.own);
    m.own.timer.fn = on_meddle;
    init(&same_slot);
    init(&next);
    arm(&m.own, 100);
    arm(&same_slot, 100); /* behind it in the same slot */
    mk__wheel_advance(&wheel, 1000);
    assert_int_equal(same_slot.fired, 0);
    assert_int_equal(m.own.fired, 4);
    assert_int_equal(m.own.fired_ms, 130);
    assert_int_equal(next.fired, 1);
    assert_int_equal(next.fired_ms, 150);

    m = (struct meddler){.arms = &next, .arms_at = 50};
    mk__wheel_init(&wheel, 1000);
    init(&m.own);
    m.own.timer.fn = on_meddle;
    init(&next);
    arm(&m.own, 1100);
    mk__wheel_advance(&wheel, 1100); /* armed in the past, inside a callback: not in this round */
    assert_int_equal(next.fired, 0);
    mk__wheel_advance(&wheel, 1101);
    assert_int_equal(next.fired, 1);
}

/* ── the model ── */

enum { PROBES = 200, STEPS = 20000 };

static uint64_t seed = 1;

static uint64_t any(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static uint64_t any_delay(void)
{
    static const uint64_t scales[] = {4, 100, 5000, 60000, HOUR, 48 * HOUR, 30 * 24 * HOUR};
    return 1 + any(scales[any(COUNT(scales))]);
}

static void check_model(struct probe *probes, uint64_t now)
{
    for (int i = 0; i < PROBES; i++) {
        struct probe *p = &probes[i];
        bool due = p->deadline_ms && p->deadline_ms <= now;
        assert_int_equal(p->fired, due);
        if (due) {
            assert_int_equal(p->fired_ms, p->deadline_ms);
            p->fired = 0;
            p->deadline_ms = 0;
        }
        assert_int_equal(mk_list_empty(&p->timer.node), p->deadline_ms == 0);
    }
}

static uint64_t next_of_model(const struct probe *probes)
{
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < PROBES; i++)
        if (probes[i].deadline_ms && probes[i].deadline_ms < next)
            next = probes[i].deadline_ms;
    return next;
}

TEST(agrees_with_a_naive_model)
{
    static struct probe probes[PROBES];
    uint64_t now = 77777;
    mk__wheel_init(&wheel, now);
    for (int i = 0; i < PROBES; i++)
        init(&probes[i]);
    for (int step = 0; step < STEPS; step++) {
        struct probe *p = &probes[any(PROBES)];
        switch (any(4)) {
        case 0:
            mk_list_del(&p->timer.node);
            p->deadline_ms = 0;
            break;
        case 1:
            now += any(4) ? any(50) : any_delay();
            mk__wheel_advance(&wheel, now);
            check_model(probes, now);
            break;
        default:
            arm(p, now + any_delay());
        }
        assert_true(mk__wheel_next_ms(&wheel) <= next_of_model(probes));
    }
    assert_true(now > 100 * 24 * HOUR); /* a long simulated time */
}
