// SPDX-License-Identifier: Apache-2.0
/* Level 1: a key-value store by the names of the library below it, and a file that includes its header only. */
#include "webservice.h"
#include "store.h"

DUDA_REGISTER("Old services", "Alone");

kv_conn_t connection;

int duda_main()
{
    duda_load_package(kv, "kv");
    kv->init(&connection);
    map->static_add("/", "cb_visits");
    return 0;
}
