// SPDX-License-Identifier: Apache-2.0
/*
 * Follows an HTML text byte by byte and tells what stands at the current place, so that a value that is inserted there
 * can be escaped for it. It knows the states of the HTML standard's tokenizer that matter for this (section 13.2.5),
 * without foreign content: <title> and <style> are read as in HTML within <svg>, too.
 */
#ifndef DIRLISTING_MARKUP_H
#define DIRLISTING_MARKUP_H

#include <monkey/str.h>

enum markup_place {
    MARKUP_TEXT,      /* between tags, or in <title> or <textarea> */
    MARKUP_ATTRIBUTE, /* in a quoted value */
    MARKUP_URL,       /* in the quoted value of href, src ... */
    MARKUP_CODE,      /* in the value of onclick, style, srcdoc ... */
    MARKUP_UNQUOTED,  /* in a value without quotes */
    MARKUP_TAG,       /* in a tag, outside a value */
    MARKUP_RAW,       /* in <script>, <style> or another element without character references */
    MARKUP_COMMENT,   /* in a comment or declaration */
};

enum { MARKUP_NAME_BYTES = 16 };

/* Begins zeroed: in text. */
struct markup {
    uint8_t state, kind; /* internal: enum markup_state, and what the tag or attribute means */
    uint8_t tag_len, attribute_len, matched;
    int8_t dashes;
    char quote;
    bool closing;
    char tag[MARKUP_NAME_BYTES], attribute[MARKUP_NAME_BYTES]; /* lower case; longer names are cut */
    /* of the elements so far: */
    bool has_script_file, has_style_file; /* <script src>, <link rel=stylesheet> */
    bool has_comment_in_script;           /* "<!--", which changes how a script ends */
};

/* Reads the next byte. */
void markup_feed(struct markup *m, char c);
/* Returns what stands at the current place. */
enum markup_place markup_place(const struct markup *m);
/* Returns true in the content of <script> or <style>; `ret_script` tells which. */
bool markup_is_inline_code(const struct markup *m, bool *ret_script);
/* Returns true if both are at the same kind of place, so that the text between them could be left out. */
bool markup_is_same(const struct markup *a, const struct markup *b);

#endif
