// SPDX-License-Identifier: Apache-2.0
/* Names of other servers, in any case, and what is here in their place. */
#include "testing.h"

#include "conf/foreign_words.h"

TEST(keys)
{
    struct mk__foreign_word word;
    assert_true(mk__foreign_words_find_key(MK_STR("Root"), &word));
    assert_string_equal(word.section, "HOST");
    assert_true(mk_str_eq(mk__foreign_words_key(&word), MK_STR("DocumentRoot")));
    assert_true(mk__foreign_words_find_key(MK_STR("return"), &word));
    assert_string_equal(word.here, "Match PATH");
    assert_string_equal(word.also, "To TARGET");
    assert_true(mk__foreign_words_find_key(MK_STR("php_flag"), &word)); /* the last row */
    assert_string_equal(word.section, "");
    assert_false(mk__foreign_words_find_key(MK_STR("DocumentRoot"), &word));
    assert_false(mk__foreign_words_find_key(MK_STR("HOST"), &word)); /* it is in a row, but no word */
    assert_false(mk__foreign_words_find_key(MK_STR(""), &word));
}

TEST(sections)
{
    struct mk__foreign_word word;
    assert_true(mk__foreign_words_find_section(MK_STR("ssl"), &word));
    assert_string_equal(word.section, "TLS");
    assert_true(mk__foreign_words_find_section(MK_STR("FASTCGI_LOCATION"), &word));
    assert_string_equal(word.section, "FASTCGI");
    assert_true(mk__foreign_words_find_section(MK_STR("location ~ \\.php$"), &word));
    assert_string_equal(word.section, "");
    assert_false(mk__foreign_words_find_section(MK_STR("HOST"), &word));
    assert_false(mk__foreign_words_find_section(MK_STR(""), &word));
}
