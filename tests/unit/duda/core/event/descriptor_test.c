// SPDX-License-Identifier: Apache-2.0
/* Descriptors of services: which callbacks are called for what has happened, and timeouts on their own clock. */
#include "testing.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "harness.h"
#include "service_slots.h"

#include "duda/core/event/descriptor.h"

struct fixture {
    struct mk_test_fixture fixture;
    struct service service;
    struct service_worker worker;
    struct mk_test_slots slots;
    struct descriptor *descriptor;
    int fd;
};

/* What the callbacks do: they append their letter, and return a result. */
static struct {
    char trail[16];
    int on_read, on_error, on_close, on_timeout;
} plan;

static int note(char letter, int result)
{
    size_t n = strlen(plan.trail);
    assert_true(n + 1 < sizeof(plan.trail));
    plan.trail[n] = letter;
    plan.trail[n + 1] = '\0';
    return result;
}

static int on_read(int fd, void *data)
{
    struct fixture *f = data;
    assert_int_equal(fd, f->fd);
    return note('r', plan.on_read);
}

static int on_write(int fd, void *data)
{
    (void)fd, (void)data;
    return note('w', DUDA_EVENT_CONTINUE);
}

static int on_error(int fd, void *data)
{
    (void)fd, (void)data;
    return note('e', plan.on_error);
}

static int on_close(int fd, void *data)
{
    struct fixture *f = data;
    assert_null(descriptor_find(&f->worker, fd));
    return note('c', plan.on_close);
}

static int on_timeout(int fd, void *data)
{
    (void)fd, (void)data;
    return note('t', plan.on_timeout);
}

/* Adds a descriptor with those callbacks that `letters` names. It is not watched: tests say what happens. */
static void open_fixture(struct fixture *f, const char *letters)
{
    memset(f, 0, sizeof(*f));
    memset(&plan, 0, sizeof(plan));
    assert_int_equal(mk_test_fixture_open(&f->fixture, NULL), 0);
    static char name[] = "test";
    f->service.self.name = (struct duda_string){name, 4};
    mk_test_slots_open(&f->slots, &f->service, &f->worker);
    f->worker.loop = &f->fixture.loop;
    f->fd = eventfd(0, 0);
    struct duda_event_handler handler = {
        .fd = f->fd,
        .mode = DUDA_EVENT_SLEEP,
        .behavior = DUDA_EVENT_LEVEL_TRIGGERED,
        .on_read = strchr(letters, 'r') ? on_read : NULL,
        .on_write = strchr(letters, 'w') ? on_write : NULL,
        .on_error = strchr(letters, 'e') ? on_error : NULL,
        .on_close = strchr(letters, 'c') ? on_close : NULL,
        .on_timeout = strchr(letters, 't') ? on_timeout : NULL,
        .data = f,
    };
    assert_int_equal(descriptor_add(&f->worker, &handler), 0);
    f->descriptor = descriptor_find(&f->worker, f->fd);
    assert_non_null(f->descriptor);
    f->descriptor->handler.mode = DUDA_EVENT_READ;
}

static void close_fixture(struct fixture *f)
{
    descriptor_remove_all(&f->worker);
    close(f->fd);
    mk_test_slots_close(&f->slots);
    mk_test_fixture_close(&f->fixture);
}

static void happen(struct fixture *f, uint32_t events)
{
    f->descriptor->event.ready(&f->descriptor->event, events);
}

enum { GOES_ON = DUDA_EVENT_CONTINUE, OWNED = DUDA_EVENT_OWNED, CLOSE = DUDA_EVENT_CLOSE };

/* What happens, which callbacks there are and what they return, which are called, and what becomes of the descriptor.
 */
static const struct row {
    uint32_t events;
    const char *letters;
    int on_read, on_error, on_close;
    const char *called;
    enum { STAYS, REMOVED, CLOSED } end;
} rows[] = {
    {EPOLLIN, "rwec", OWNED, 0, 0, "r", STAYS},
    {EPOLLIN | EPOLLOUT, "rw", GOES_ON, 0, 0, "rw", STAYS},
    {EPOLLIN | EPOLLOUT, "rw", 99, 0, 0, "rw", STAYS}, /* as CONTINUE */
    {EPOLLIN | EPOLLOUT, "rw", OWNED, 0, 0, "r", STAYS},
    {EPOLLIN | EPOLLOUT, "rw", CLOSE, 0, 0, "r", CLOSED},
    {EPOLLIN, "rc", CLOSE, 0, GOES_ON, "rc", CLOSED},
    {EPOLLERR, "rwe", 0, OWNED, 0, "e", STAYS},
    {EPOLLERR, "rwec", 0, GOES_ON, 0, "ec", CLOSED},
    {EPOLLERR, "rwec", 0, CLOSE, 0, "ec", CLOSED},
    {EPOLLERR, "rw", OWNED, 0, 0, "r", STAYS}, /* read() tells the error */
    {EPOLLERR | EPOLLIN, "r", GOES_ON, 0, 0, "r", STAYS},
    {EPOLLHUP, "rwec", 0, 0, CLOSE, "c", CLOSED},
    {EPOLLHUP, "rwec", 0, 0, GOES_ON, "c", REMOVED},
    {EPOLLHUP | EPOLLIN, "rwec", GOES_ON, 0, CLOSE, "r", STAYS}, /* until all is read */
    {EPOLLHUP, "r", CLOSE, 0, 0, "r", CLOSED},
    {EPOLLIN, "w", 0, 0, 0, "", REMOVED},
    {EPOLLHUP | EPOLLERR, "t", 0, 0, 0, "", REMOVED},
};

TEST(callbacks)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        struct fixture f;
        open_fixture(&f, row->letters);
        plan.on_read = row->on_read;
        plan.on_error = row->on_error;
        plan.on_close = row->on_close;
        happen(&f, row->events);
        assert_string_equal(plan.trail, row->called);
        assert_int_equal(!descriptor_find(&f.worker, f.fd), row->end != STAYS);
        assert_int_equal(fcntl(f.fd, F_GETFD) < 0, row->end == CLOSED);
        if (row->end == CLOSED)
            f.fd = -1;
        close_fixture(&f);
    }
}

TEST(a_timeout_begins_again_with_each_event)
{
    struct fixture f;
    open_fixture(&f, "rt");
    plan.on_read = OWNED;
    descriptor_set_timeout(f.descriptor, 100);
    mk_test_pass(&f.fixture, 99);
    happen(&f, EPOLLIN);
    mk_test_pass(&f.fixture, 99);
    assert_string_equal(plan.trail, "r");
    mk_test_pass(&f.fixture, 1);
    assert_string_equal(plan.trail, "rt");
    mk_test_pass(&f.fixture, 100); /* and again after the same time */
    assert_string_equal(plan.trail, "rtt");
    descriptor_set_timeout(f.descriptor, 0);
    mk_test_pass(&f.fixture, 1000);
    assert_string_equal(plan.trail, "rtt");
    close_fixture(&f);
}

TEST(a_timeout_closes)
{
    struct fixture f;
    open_fixture(&f, "ct");
    plan.on_timeout = CLOSE;
    descriptor_set_timeout(f.descriptor, 100);
    mk_test_pass(&f.fixture, 1000);
    assert_string_equal(plan.trail, "tc");
    assert_null(descriptor_find(&f.worker, f.fd));
    assert_true(fcntl(f.fd, F_GETFD) < 0);
    f.fd = -1;
    close_fixture(&f);
}
