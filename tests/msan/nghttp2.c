// SPDX-License-Identifier: Apache-2.0
/*
 * The decoder of libnghttp2, by which unit tests read the header blocks of the server. It was compiled without
 * MemorySanitizer: the linker takes this function in its place, which marks what the library has written.
 */
#include <assert.h>
#include <dlfcn.h>
#include <nghttp2/nghttp2.h>
#include <sanitizer/msan_interface.h>

ssize_t nghttp2_hd_inflate_hd2(nghttp2_hd_inflater *inflater, nghttp2_nv *nv, int *flags, const uint8_t *in, size_t len,
                               int final)
{
    static typeof(&nghttp2_hd_inflate_hd2) inflate;
    if (!inflate)
        *(void **)&inflate = dlsym(RTLD_NEXT, "nghttp2_hd_inflate_hd2");
    assert(inflate);
    ssize_t n = inflate(inflater, nv, flags, in, len, final);
    __msan_unpoison(flags, sizeof(*flags));
    if (n >= 0 && *flags & NGHTTP2_HD_INFLATE_EMIT) {
        __msan_unpoison(nv, sizeof(*nv));
        __msan_unpoison(nv->name, nv->namelen);
        __msan_unpoison(nv->value, nv->valuelen);
    }
    return n;
}
