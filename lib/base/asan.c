// SPDX-License-Identifier: Apache-2.0
/*
 * Defaults of the sanitizers, for builds that have them; nothing in all others. What the environment says
 * wins.
 */
#include "base/asan.h"

#include <monkey/status.h>

#if MK__ASAN
MK_API const char *__asan_default_options(void);

/* With a signal stack of its own the runtime sees an overflow, now and then, where a thread just ends. */
const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}
#endif
