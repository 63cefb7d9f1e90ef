// SPDX-License-Identifier: Apache-2.0
/*
 * Defaults of the sanitizers, for builds that have them; nothing in all others. What the environment says
 * wins.
 */
#include <monkey/status.h>

#if defined(__SANITIZE_ADDRESS__)
#define MK__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MK__ASAN 1
#endif
#endif

#ifdef MK__ASAN
MK_API const char *__asan_default_options(void);

/* With a signal stack of its own the runtime sees an overflow, now and then, where a thread just ends. */
const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}
#endif
