// SPDX-License-Identifier: Apache-2.0
/*
 * Default options of AddressSanitizer; only builds with it compile this file. ASAN_OPTIONS in the environment overrides
 * them.
 */
#include <monkey/status.h>

MK_API const char *__asan_default_options(void);

/* On an alternate signal stack the runtime sometimes reports a stack overflow when a thread merely ends. */
const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}
