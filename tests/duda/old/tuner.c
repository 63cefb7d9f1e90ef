// SPDX-License-Identifier: Apache-2.0
/* Level 1: a number that clients read and write, and names of objects as those of variables. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Tuner");

static int get_number(duda_request_t *dr, double *number)
{
    char *data, *end;
    unsigned long len;
    char value[16];

    if (request->is_post(dr) == MK_TRUE) {
        data = request->get_data(dr, &len);
        gc->add(dr, data);
        len = len > sizeof(value) - 1 ? sizeof(value) - 1 : len;
        memcpy(value, data, len);
        value[len] = 0;
        *number = strtod(value, &end);
        return end != value ? 0 : -1;
    }
    return 0;
}

void cb_frequency(duda_request_t *dr)
{
    static double current = 89.50;
    double frequency = current;
    int status = get_number(dr, &frequency) == 0 && frequency < 108 ? 200 : 400;

    if (status == 200)
        current = frequency;
    response->http_status(dr, status);
    response->printf(dr, "%.2f\n", current);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/frequency", "cb_frequency");
    return 0;
}
