// SPDX-License-Identifier: Apache-2.0
/*
 * Whether this build has AddressSanitizer (MK__ASAN is 1) or MemorySanitizer (MK__MSAN is 1), else 0. With one of them
 * each object of a pool is an allocation of its own (MK__POOL_IS_MALLOC), so that each use after its end, or before its
 * initialization, is seen.
 */
#ifndef MK_BASE_ASAN_H
#define MK_BASE_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#define MK__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MK__ASAN 1
#elif __has_feature(memory_sanitizer)
#define MK__MSAN 1
#endif
#endif
#ifndef MK__ASAN
#define MK__ASAN 0
#endif
#ifndef MK__MSAN
#define MK__MSAN 0
#endif
#define MK__POOL_IS_MALLOC (MK__ASAN || MK__MSAN)

#endif
