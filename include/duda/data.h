// SPDX-License-Identifier: Apache-2.0
/*
 * The object `data`: the folder of the service's data, [WEB_SERVICE] DataDir.
 */
#ifndef DUDA_DATA_H
#define DUDA_DATA_H

#include "types.h"

struct duda_api_data {
    /* Returns the folder with a slash at its end, valid as long as the service; NULL if none is set. Any thread. */
    char *(*get_path)(void);
    /* Sets the folder, which must exist. Returns 0 or -1, which is logged. Only in duda_main(). */
    int (*set_path)(const char *path);
    /*
     * Returns the path of a file of the folder, valid as long as the request. NULL, which is logged: no folder is set,
     * `file` is absolute or leads out of the folder (".."), or no memory.
     */
    char *(*locate)(duda_request_t *dr, const char *file);
};

DUDA_OBJECT(struct duda_api_data, data)

#endif
