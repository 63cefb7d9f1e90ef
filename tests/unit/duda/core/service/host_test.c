// SPDX-License-Identifier: Apache-2.0
/* Finds the services of a host by the paths of requests. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>

#include "duda/core/service/host.h"

enum { SERVICES_MAX = 300 };

/* A host with services whose segments are sorted, as host_run() leaves them; the empty one is its root. */
struct fixture {
    struct duda_host *host;
    char names[SERVICES_MAX][8];
};

static void open_fixture(struct fixture *f, const char *const *segments, unsigned n)
{
    f->host = calloc(1, sizeof(*f->host) + n * sizeof(f->host->services[0]));
    assert_non_null(f->host);
    f->host->n = n;
    for (unsigned i = 0; i < n; i++) {
        f->host->services[i].segment = mk_str_c(segments[i]);
        f->host->services[i].index = i;
    }
    if (n && !*segments[0])
        f->host->root = &f->host->services[0];
}

/* Returns the segment of the service that is found, or "none". */
static const char *find(const struct duda_host *host, const char *path, const char *rest)
{
    struct mk_str found_rest;
    const struct host_service *e = host_find(host, mk_str_c(path), &found_rest);
    assert_str_equal(found_rest, rest);
    return e ? e->segment.p : "none";
}

TEST(the_first_segment_is_the_name)
{
    static const char *const segments[] = {"a", "ab", "b.c", "shop"};
    struct fixture f;
    open_fixture(&f, segments, COUNT(segments));
    assert_string_equal(find(f.host, "/a", ""), "a");
    assert_string_equal(find(f.host, "/a/", "/"), "a");
    assert_string_equal(find(f.host, "/ab/a/b", "/a/b"), "ab");
    assert_string_equal(find(f.host, "/b.c//", "//"), "b.c");
    assert_string_equal(find(f.host, "/shop", ""), "shop");
    static const char *const others[] = {"/", "/abc", "/A", "/sho", "/shopp/a", "//a", "/ a", "*", ""};
    for (size_t i = 0; i < COUNT(others); i++)
        assert_string_equal(find(f.host, others[i], others[i]), "none");
    free(f.host);
}

/* It gets the whole path of what no other service has. */
TEST(the_root_service)
{
    static const char *const segments[] = {"", "a"};
    struct fixture f;
    open_fixture(&f, segments, COUNT(segments));
    assert_string_equal(find(f.host, "/a/b", "/b"), "a");
    assert_string_equal(find(f.host, "/ab/c", "/ab/c"), "");
    assert_string_equal(find(f.host, "/", "/"), "");
    assert_string_equal(find(f.host, "//", "//"), "");
    assert_string_equal(find(f.host, "//a", "//a"), "");
    assert_string_equal(find(f.host, "*", "*"), "none"); /* OPTIONS * */
    free(f.host);
}

TEST(many_services)
{
    struct fixture f;
    const char *segments[SERVICES_MAX];
    char path[16];
    for (unsigned n = 0; n <= SERVICES_MAX; n += 1 + n / 8) {
        for (unsigned i = 0; i < n; i++) {
            snprintf(f.names[i], sizeof(f.names[i]), "s%03u", i);
            segments[i] = f.names[i];
        }
        open_fixture(&f, segments, n);
        for (unsigned i = 0; i < n; i++) {
            snprintf(path, sizeof(path), "/s%03u/x", i);
            assert_string_equal(find(f.host, path, "/x"), f.names[i]);
        }
        snprintf(path, sizeof(path), "/s%03u/x", n);
        assert_string_equal(find(f.host, path, path), "none");
        free(f.host);
    }
}

/* Two services may choose the same URL in duda_main(): a warning says that the first one gets the requests. */
TEST(the_first_of_a_name)
{
    static const char *const segments[] = {"a", "b", "b", "b", "c"};
    struct fixture f;
    struct mk_str rest;
    open_fixture(&f, segments, COUNT(segments));
    assert_int_equal(host_find(f.host, MK_STR("/b/x"), &rest)->index, 1);
    free(f.host);
}
