// SPDX-License-Identifier: Apache-2.0
/* The word of the service. */
#include "words.h"

const char *get_word(void)
{
    return "ruled";
}
