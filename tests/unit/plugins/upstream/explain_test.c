// SPDX-License-Identifier: Apache-2.0
/* What the log says of a group that has no server for a request. */
#include "plugins/upstream/group_fixture.h"

static void assert_explained(int err, const char *wanted)
{
    MK_BUF_ON_STACK(text, 512);
    explain_failure(group, err, &text);
    assert_string_equal(mk_buf_cstr(&text), wanted);
}

TEST(states_of_servers)
{
    open_group(0);
    lines[0].is_down = lines[1].is_draining = true;
    lines[2].weight = 0;
    group_members(group)->items[0].server->ejected_until = UINT64_MAX; /* it is counted once */
    assert_explained(-ENXIO, "no server of the group can be used: of 4, 1 set down, 1 set to drain, 1 with weight 0");
    lines[0].is_down = lines[1].is_draining = false;
    group_members(group)->items[1].server->health = HEALTH_DOWN;
    assert_explained(-ENXIO, "no server of the group can be used: of 4, 1 down by Check, 1 ejected by EjectAfter, "
                             "1 with weight 0");
    close_group();
}

TEST(servers_that_could_not_be_reached)
{
    open_group(0);
    assert_explained(-ENXIO, "no server of the group can be used: none of its 4 servers could be reached");
    group_free(group);
    conf.servers.n = 1;
    group = group_make(&conf, &group_names);
    assert_explained(-ENXIO, "no server of the group can be used: its server could not be reached");
    group_free(group);
    conf.servers.n = 0;
    group = group_make(&conf, &group_names);
    assert_explained(-ENXIO, "no server of the group can be used: it has no servers: its names have no addresses");
    close_group();
}

TEST(waits)
{
    open_group(0);
    conf.max_connections = 2;
    conf.queue = 1;
    assert_explained(-EBUSY, "all servers of the group have MaxConnections, and Queue is full (they are 2 and 1)");
    assert_explained(-ENOMEM, "there is no memory for the wait for a server of the group");
    assert_explained(-ETIMEDOUT, "no server of the group had room within QueueTimeout (it is 5 s)");
    conf.queue_timeout_ms = 1500;
    assert_explained(-ETIMEDOUT, "no server of the group had room within QueueTimeout (it is 1500 ms)");
    close_group();
}

TEST_FILE()
