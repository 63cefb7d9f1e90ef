// SPDX-License-Identifier: Apache-2.0
/* A part of the service, which needs a flag and its own library. */
#include <math.h>

#ifndef PART
#error the flags of the sub-folder are missing
#endif

int get_size(double volume)
{
    return cbrt(volume);
}
