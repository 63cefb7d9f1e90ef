// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of docs/internals/connection-states.md that unit tests generate from the source: a test fails if its part of
 * the page is out of date, and updates it if MK_UPDATE_DOCS is set.
 */
#ifndef MK_UNIT_HTTP_DRAWING_H
#define MK_UNIT_HTTP_DRAWING_H

#include "testing.h"

#include <stdio.h>
#include <stdlib.h>

#define MK_TEST_PAGE MK_TEST_SOURCE_DIR "/docs/internals/connection-states.md"

static inline void mk_test_write_page(const char *page, const char *begin, const char *drawing, const char *end)
{
    FILE *file = fopen(MK_TEST_PAGE, "w");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(begin - page), page, drawing, end);
    assert_int_equal(fclose(file), 0);
}

/* `begin_mark` is the line before it. */
static inline void mk_test_draw(const char *begin_mark, const char *drawing)
{
    static char page[32768];
    FILE *file = fopen(MK_TEST_PAGE, "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
    fclose(file);
    const char *begin = strstr(page, begin_mark);
    assert_non_null(begin);
    begin += strlen(begin_mark);
    const char *end = strstr(begin, "<!-- end: generated -->\n");
    assert_non_null(end);
    if (getenv("MK_UPDATE_DOCS")) {
        mk_test_write_page(page, begin, drawing, end);
        return;
    }
    if (strlen(drawing) != (size_t)(end - begin) || memcmp(drawing, begin, strlen(drawing)) != 0)
        fail_msg("docs/internals/connection-states.md is not current: run this test with MK_UPDATE_DOCS=1");
}

#endif
