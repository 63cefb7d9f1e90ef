// SPDX-License-Identifier: Apache-2.0
/*
 * Accept: the choice is an offer or the fallback, and the same as the best of single choices.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include <monkey/base/accept.h>

enum { OFFERS = 3, NONE };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mk_accept_offer offers[OFFERS] = {
        {.type = MK_STR("text/plain"), .version = MK_STR("0.0.4")},
        {.type = MK_STR("text/html"), .only_by_name = true},
        {.type = MK_STR("application/json")},
    };
    char *copy = malloc(size + !size); /* its end is known to ASan */
    memcpy(copy, data, size);
    struct mk_str value = mk_str(copy, size);
    unsigned chosen = mk_accept_choose(value, offers, OFFERS, NONE);
    assert(chosen < OFFERS || chosen == NONE);
    bool is_acceptable = false;
    for (unsigned i = 0; i < OFFERS; i++) {
        struct mk_accept_offer pair[] = {offers[chosen % OFFERS], offers[i]};
        assert(chosen == NONE || mk_accept_choose(value, pair, 2, NONE) == 0 || i < chosen);
        is_acceptable |= mk_accept_choose(value, &offers[i], 1, NONE) == 0;
    }
    assert(is_acceptable == (chosen < OFFERS));
    free(copy);
    return 0;
}
