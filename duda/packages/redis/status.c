// SPDX-License-Identifier: Apache-2.0
/*
 * Error replies (status.h). Redis begins them with a word in capitals; some of older versions have only a sentence.
 */
#include "status.h"

#include <monkey/status.h>

#include <errno.h>
#include <string.h>

static const struct {
    const char *begin;
    int err;
} errors[] = {
    {"NOAUTH", -EACCES},
    {"WRONGPASS", -EACCES},
    {"NOPERM", -EACCES},
    {"DENIED", -EACCES},
    {"ERR invalid password", -EACCES},
    {"ERR AUTH", -EACCES},
    {"ERR Client sent AUTH", -EACCES},
    {"LOADING", -EAGAIN},
    {"BUSY ", -EAGAIN},
    {"MASTERDOWN", -EAGAIN},
    {"TRYAGAIN", -EAGAIN},
    {"CLUSTERDOWN", -EAGAIN},
    {"ERR max number of clients", -EAGAIN},
    {"OOM", -ENOSPC},
    {"MISCONF", -ENOSPC},
    {"READONLY", -EROFS},
};

int redis_status_of(const char *text)
{
    for (size_t i = 0; i < MK_COUNT_OF(errors); i++)
        if (strncmp(text, errors[i].begin, strlen(errors[i].begin)) == 0)
            return errors[i].err;
    return -EREMOTEIO;
}
