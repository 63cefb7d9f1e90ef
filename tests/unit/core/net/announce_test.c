// SPDX-License-Identifier: Apache-2.0
/* Names of listening sockets: written, found in /proc/net/unix, and gone. */
#include "testing.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/announce.h"

/* Counts the names of this process, and adds their inodes up. */
static unsigned find_names(bool *ret_changing, unsigned long *ret_sum, unsigned *ret_sockets)
{
    char line[512];
    unsigned n = 0;
    FILE *file = fopen("/proc/net/unix", "re");
    assert_non_null(file);
    *ret_changing = false;
    *ret_sum = 0;
    *ret_sockets = 0;
    while (fgets(line, sizeof(line), file)) {
        struct mk__announced names;
        if (!mk__announce_parse(line, &names) || names.pid != getpid())
            continue;
        n++;
        *ret_changing |= names.changing;
        *ret_sockets += names.n;
        for (unsigned i = 0; i < names.n; i++)
            *ret_sum += names.inodes[i];
    }
    fclose(file);
    return n;
}

static void check_names(unsigned n, bool changing, const int *fds, unsigned n_fds)
{
    bool now_changing;
    unsigned sockets;
    unsigned long sum = 0, now_sum;
    struct stat st;
    for (unsigned i = 0; i < n_fds; i++) {
        assert_int_equal(fstat(fds[i], &st), 0);
        sum += st.st_ino;
    }
    assert_int_equal(find_names(&now_changing, &now_sum, &sockets), n);
    assert_int_equal(now_changing, changing);
    assert_int_equal(sockets, n_fds);
    assert_int_equal(now_sum, sum);
}

static void announce(struct mk__announcement *a, const int *fds, unsigned n)
{
    mk__announce_clear(a);
    for (unsigned i = 0; i < n; i++)
        mk__announce_add(a, fds[i]);
    mk__announce_end(a);
}

TEST(lines)
{
    static const char *const others[] = {
        "Num       RefCount Protocol Flags    Type St Inode Path\n",
        "0000: 00000002 00000000 00000000 0001 01 4711 @monkey/12/3/\n",
        "0000: 00000002 00000000 00000000 0001 01 4711 @monkey/x/3/ff\n",
        "0000: 00000002 00000000 00000000 0001 01 4711 @monkey/-1/3/ff\n",
        "0000: 00000002 00000000 00000000 0001 01 4711 @monkey/12/ff\n",
        "0000: 00000002 00000000 00000000 0001 01 4711 /run/monkey/12/3/ff\n",
        "0000: 00000002 00000000 00000000 0001 01 4711\n",
        "",
    };
    struct mk__announced names;
    assert_true(mk__announce_parse("0000: 00000002 00000000 00000000 0001 01 4711 @monkey/12/3/ff,1a2b\n", &names));
    assert_int_equal(names.pid, 12);
    assert_int_equal(names.n, 2);
    assert_int_equal(names.inodes[0], 0xff);
    assert_int_equal(names.inodes[1], 0x1a2b);
    assert_false(names.changing);
    assert_true(mk__announce_parse("0000: 00000002 00000000 00000000 0001 01 4711 @monkey/12/3/changing\n", &names));
    assert_true(names.changing);
    assert_int_equal(names.n, 0);
    assert_true(mk__announce_parse("0: 2 0 0 1 1 4 @monkey/12/3/1,2,3,4,5,6,7,8,9,a\n", &names));
    assert_int_equal(names.n, MK__ANNOUNCE_INODES);
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(mk__announce_parse(others[i], &names));
}

TEST(names_follow_the_sockets)
{
    struct mk__announcement a = {.n = 0};
    int fds[2 * MK__ANNOUNCE_INODES + 1];
    for (size_t i = 0; i < COUNT(fds); i++)
        assert_true((fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
    check_names(0, false, NULL, 0);
    mk__announce_begin(&a);
    mk__announce_begin(&a);
    check_names(1, true, NULL, 0);
    announce(&a, fds, 1);
    check_names(1, false, fds, 1);
    for (unsigned i = 0; i < 100; i++) {
        unsigned n = i % (COUNT(fds) + 1), names = (n + MK__ANNOUNCE_INODES - 1) / MK__ANNOUNCE_INODES;
        mk__announce_begin(&a);
        announce(&a, fds, n);
        check_names(names, false, fds, n);
    }
    mk__announce_begin(&a);
    mk__announce_close(&a);
    check_names(0, false, NULL, 0);
    for (size_t i = 0; i < COUNT(fds); i++)
        close(fds[i]);
}

TEST(none_of_too_many)
{
    struct mk__announcement a = {.n = 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mk__announce_begin(&a);
    mk__announce_clear(&a);
    for (unsigned i = 0; i < MK__ANNOUNCE_NAMES_MAX * MK__ANNOUNCE_INODES + 10; i++)
        mk__announce_add(&a, fd);
    mk__announce_end(&a);
    check_names(0, false, NULL, 0);
    announce(&a, &fd, 1);
    check_names(1, false, &fd, 1);
    mk__announce_close(&a);
    close(fd);
}

TEST(none_without_descriptors)
{
    struct mk__announcement a = {.n = 0};
    struct rlimit limit, few;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    announce(&a, &fd, 1);
    check_names(1, false, &fd, 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = (struct rlimit){(rlim_t)fd, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    mk__announce_begin(&a);
    announce(&a, &fd, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    check_names(0, false, NULL, 0);
    mk__announce_begin(&a);
    announce(&a, &fd, 1);
    check_names(1, false, &fd, 1);
    mk__announce_close(&a);
    close(fd);
}
