// SPDX-License-Identifier: Apache-2.0
/* Level 1: several files, with globals in their header, and names of objects as names of variables. */
#include "files3.h"

DUDA_REGISTER("Old services", "Files");

int duda_main()
{
    greeting = "hello";
    mk_list_init(&names);
    if (mk_list_is_empty(&names) != 0)
        return -1;
    add_name("ada");
    add_name("bob");
    add_name("eve");
    if (mk_list_is_empty(&names) == 0)
        return -1;
    map->static_add("/list/", "cb_list");
    map->static_add("/early/", "cb_early");
    map->static_add("/strings/", "cb_strings");
    return 0;
}

void duda_exit()
{
    while (mk_list_is_empty(&names) != 0)
        remove_name(mk_list_entry_first(&names, struct name, _head));
}
