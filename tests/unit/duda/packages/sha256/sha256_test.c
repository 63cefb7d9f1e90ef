// SPDX-License-Identifier: Apache-2.0
/* The package sha256: vectors of FIPS 180-4 and RFC 4231, texts in pieces, wrong arguments, no memory, and threads. */
#include "../sha_vectors.h"

static const struct vector vectors[] = {
    {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

static const struct hmac_vector hmacs[] = {
    {"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", 1, "Hi There", 1,
     "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
    {"Jefe", 1, "what do ya want for nothing?", 1, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    {"\xaa", 20, "\xdd", 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
    {"\xaa", 131, "Test Using Larger Than Block-Size Key - Hash Key First", 1,
     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    {"", 1, "", 1, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
};

static const struct duda_api_sha256 *api;

static int encode(const void *data, size_t len, unsigned char *digest)
{
    return api->encode(data, digest, (long)len);
}

TEST(a_negative_length)
{
    unsigned char digest[SHA256_DIGEST_LENGTH] = {1};
    assert_int_equal(api->encode("abc", digest, -1), -EINVAL);
    assert_int_equal(digest[0], 0);
}

static int set_up(void **state)
{
    (void)state;
    use_failing_memory();
    api = duda_package_main()->api;
    functions = (struct functions){encode,         api->init,     api->update, api->final,           api->abort,
                                   api->hmac,      api->is_equal, api->hex,    SHA256_DIGEST_LENGTH, vectors,
                                   COUNT(vectors), hmacs,         COUNT(hmacs)};
    return 0;
}

TEST_FILE(set_up)
