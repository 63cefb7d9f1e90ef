// SPDX-License-Identifier: Apache-2.0
/* Names of other servers, in any case, and what is here in their place. */
#include "testing.h"

#include "conf/foreign_words.h"

TEST(keys)
{
    struct mk__foreign_word word;
    assert_true(mk__foreign_words_find_key(MK_STR("Root"), MK_STR_NONE, &word));
    assert_string_equal(word.section, "HOST");
    assert_true(mk_str_eq(mk__foreign_words_key(&word), MK_STR("DocumentRoot")));
    assert_true(mk__foreign_words_find_key(MK_STR("return"), MK_STR_NONE, &word));
    assert_string_equal(word.here, "Match PATH");
    assert_string_equal(word.also, "To TARGET");
    assert_true(mk__foreign_words_find_key(MK_STR("php_flag"), MK_STR_NONE, &word)); /* the last row */
    assert_string_equal(word.section, "");
    assert_true(mk__foreign_words_find_key(MK_STR("Return"), MK_STR("200"), &word)); /* a row with a value */
    assert_string_equal(word.section, "RESPOND");
    assert_true(mk__foreign_words_find_key(MK_STR("return"), MK_STR("404"), &word));
    assert_string_equal(word.section, "RULES");
    assert_true(mk__foreign_words_find_key(MK_STR("return"), MK_STR("301"), &word));
    assert_string_equal(word.section, "REDIRECT");
    assert_true(mk__foreign_words_find_key(MK_STR("return"), MK_STR("2000"), &word));
    assert_string_equal(word.section, "REDIRECT");
    assert_false(mk__foreign_words_find_key(MK_STR("return 200"), MK_STR_NONE, &word));
    assert_false(mk__foreign_words_find_key(MK_STR("DocumentRoot"), MK_STR_NONE, &word));
    assert_false(mk__foreign_words_find_key(MK_STR("HOST"), MK_STR_NONE, &word)); /* it is in a row, but no word */
    assert_false(mk__foreign_words_find_key(MK_STR(""), MK_STR_NONE, &word));
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
