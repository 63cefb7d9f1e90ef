// SPDX-License-Identifier: Apache-2.0
/* Level 1: asks the socket for the address of the client. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Peers");

void cb_client(duda_request_t *dr)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);

    response->http_status(dr, 200);
    if (getpeername(dr->cs->socket, (struct sockaddr *)&address, &size) == 0)
        response->printf(dr, "%s", inet_ntoa(address.sin_addr));
    response->printf(dr, " %d", dr->socket == dr->cs->socket);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/client", "cb_client");
    return 0;
}
