// SPDX-License-Identifier: Apache-2.0
/* The tables of sockets of the kernel, and the process of a real socket. */
#include "testing.h"

#include <unistd.h>

#include "net/port_owner.h"
#include "net/listen.h"

TEST(rows_of_tcp)
{
    static const struct {
        const char *line, *addr; /* NULL: no socket that listens */
        unsigned uid;
        unsigned long inode;
    } rows[] = {
        {"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout", NULL, 0, 0},
        {"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 4711 1 0 100 0",
         "127.0.0.1:8080", 33, 4711},
        {"   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0 0",
         "0.0.0.0:80", 0, 12},
        {"   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 13 1", NULL, 0, 0},
        {"   3: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 "
         "00:00000000 00000000  1000        0 14 1",
         "[::1]:8080", 1000, 14},
        {"   4: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 "
         "00:00000000 00000000     0        0 15 1",
         "*:8080", 0, 15},
        {"   5: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 "
         "00:00000000 00000000     0        0 16 1",
         "127.0.0.1:8080", 0, 16},
        {"   6: 0100007F0100:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 17", NULL, 0, 0},
        {"", NULL, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk__port_owner_socket found;
        MK_BUF_ON_STACK(text, 160);
        bool listens = mk__port_owner_parse_tcp(rows[i].line, &found);
        assert_int_equal(listens, rows[i].addr != NULL);
        if (!listens)
            continue;
        mk__addr_print(&found.addr, &text);
        assert_string_equal(mk_buf_cstr(&text), rows[i].addr);
        assert_int_equal(found.uid, rows[i].uid);
        assert_int_equal(found.inode, rows[i].inode);
    }
}

TEST(handshakes)
{
    struct mk__port_owner_socket found;
    MK_BUF_ON_STACK(text, 160);
    static const char row[] = "  12: 0100007F:1F90 0100007F:C350 03 00000000:00000000 01:0000004D 00000000     0 "
                              "       0 0 1 0";
    assert_true(mk__port_owner_parse_handshake(row, &found));
    mk__addr_print(&found.addr, &text);
    assert_string_equal(mk_buf_cstr(&text), "127.0.0.1:8080");
    assert_false(mk__port_owner_parse_tcp(row, &found));
    assert_false(mk__port_owner_parse_handshake(
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 4711 1", &found));
    struct mk__addr nowhere;
    const char *error;
    assert_int_equal(mk__addr_parse(MK_STR("192.0.2.1:1"), &nowhere, &error), 0);
    struct mk__handshakes clients;
    mk__handshakes_find(&clients, &nowhere);
    assert_int_equal(clients.n, 0);
    clients = (struct mk__handshakes){.peers = {1, 2}, .n = 2};
    mk__handshakes_update(&clients, &nowhere);
    assert_int_equal(clients.n, 0); /* they have ended */
}

TEST(rows_of_unix)
{
    static const char *const others[] = {
        "Num       RefCount Protocol Flags    Type St Inode Path\n",
        "ffff888: 00000003 00000000 00000000 0001 03 4711 /run/x\n",
        "ffff888: 00000002 00000000 00010000 0001 01 4711 @abstract\n",
        "ffff888: 00000002 00000000 00010000 0001 01 4711\n",
        "",
    };
    struct mk__port_owner_socket found;
    assert_true(mk__port_owner_parse_unix("ffff888: 00000002 00000000 00010000 0001 01 4711 /run/a b\n", &found));
    assert_string_equal(found.addr.un.sun_path, "/run/a b");
    assert_int_equal(found.inode, 4711);
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(mk__port_owner_parse_unix(others[i], &found));
}

static bool is_self(int pid, void *ctx)
{
    ++*(int *)ctx;
    return pid == getpid();
}

TEST(the_process_of_a_socket)
{
    const struct mk__listen_options options = {.backlog = 1};
    struct mk__addr addr, all;
    struct mk__port_owner holder;
    const char *error;
    int asked = 0;
    assert_int_equal(mk__addr_parse(MK_STR("127.0.0.1:0"), &addr, &error), 0);
    int fd = mk__listen_bind(&addr, &options);
    assert_true(fd >= 0);
    assert_int_equal(mk__port_owner_find(&addr, NULL, NULL, &holder), MK__PORT_OWNER_NONE); /* it does not listen yet */
    assert_int_equal(mk__listen_start(fd, &addr, &options), 0);
    assert_int_equal(mk__addr_parse(MK_STR("*:0"), &all, &error), 0);
    mk__addr_set_port(&all, mk__addr_port(&addr));
    assert_int_equal(mk__port_owner_find(&addr, NULL, NULL, &holder), MK__PORT_OWNER_OTHER);
    assert_int_equal(holder.pid, getpid());
    assert_true(holder.name[0]);
    assert_int_equal(mk__port_owner_find(&all, is_self, &asked, &holder), MK__PORT_OWNER_OWN);
    assert_true(asked > 0);
    close(fd);
}
