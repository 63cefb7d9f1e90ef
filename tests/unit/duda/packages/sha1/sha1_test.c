// SPDX-License-Identifier: Apache-2.0
/* The package sha1: vectors of FIPS 180-4 and RFC 2202, and the tests of sha_vectors.h. */
#include "../sha_vectors.h"

static const struct vector vectors[] = {
    {"", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
    {"abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
    {"a", 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"},
    {"dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11", 1, "b37a4f2cc0624f1690f64606cf385945b2bec4ea"},
};

static const struct hmac_vector hmacs[] = {
    {"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", 1, "Hi There", 1,
     "b617318655057264e28bc0b6fb378c8ef146be00"},
    {"Jefe", 1, "what do ya want for nothing?", 1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"},
    {"\xaa", 80, "Test Using Larger Than Block-Size Key - Hash Key First", 1,
     "aa4ae5e15272d00e95705637ce8a3b55ed402112"},
    {"", 1, "", 1, "fbdb1d1b18aa6c08324b7d64b71fb76370690e1d"},
};

static const struct duda_api_sha1 *api;

static int encode(const void *data, size_t len, unsigned char *digest)
{
    return api->encode(data, digest, len);
}

static int set_up(void **state)
{
    (void)state;
    use_failing_memory();
    api = duda_package_main()->api;
    functions = (struct functions){encode,         api->init,     api->update, api->final,        api->abort,
                                   api->hmac,      api->is_equal, api->hex,    SHA_DIGEST_LENGTH, vectors,
                                   COUNT(vectors), hmacs,         COUNT(hmacs)};
    return 0;
}

TEST_FILE(set_up)
