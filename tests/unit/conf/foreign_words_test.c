// SPDX-License-Identifier: Apache-2.0
/* Names of other servers, in any case, and what is here in their place. */
#include "testing.h"

#include "conf/foreign_words.h"

TEST(keys)
{
    const struct mk__foreign_word *word = mk__foreign_words_find_key(MK_STR("Root"));
    assert_non_null(word);
    assert_string_equal(word->section, "HOST");
    assert_true(mk_str_eq(mk__foreign_words_key(word), MK_STR("DocumentRoot")));
    word = mk__foreign_words_find_key(MK_STR("return"));
    assert_string_equal(word->here, "Match PATH");
    assert_string_equal(word->also, "To TARGET");
    word = mk__foreign_words_find_key(MK_STR("proxy_pass"));
    assert_null(word->section);
    assert_null(mk__foreign_words_find_key(MK_STR("DocumentRoot")));
    assert_null(mk__foreign_words_find_key(MK_STR("")));
}

TEST(sections)
{
    assert_string_equal(mk__foreign_words_find_section(MK_STR("ssl"))->section, "TLS");
    assert_null(mk__foreign_words_find_section(MK_STR("location ~ \\.php$"))->section);
    assert_null(mk__foreign_words_find_section(MK_STR("HOST")));
    assert_null(mk__foreign_words_find_section(MK_STR("")));
}
