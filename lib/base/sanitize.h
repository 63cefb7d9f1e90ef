// SPDX-License-Identifier: Apache-2.0
/*
 * Whether this build has AddressSanitizer: MK__ASAN is 1 then, else 0. Memory is handed out differently there, so
 * that each use after its end is seen.
 */
#ifndef MK_BASE_SANITIZE_H
#define MK_BASE_SANITIZE_H

#if defined(__SANITIZE_ADDRESS__)
#define MK__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MK__ASAN 1
#endif
#endif
#ifndef MK__ASAN
#define MK__ASAN 0
#endif

#endif
