# SPDX-License-Identifier: Apache-2.0
# Makes files of a page part of a plugin: mk_embed_files(PLUGIN SYMBOL NAME TYPE PATH ...) adds the table PLUGIN_files
# (<monkey/kit/embedded.h>) to its module. NAME "." is the page itself; all are
# texts in UTF-8.
function(mk_embed_files plugin)
    set(EMBED_TEXT "")
    set(EMBED_ROWS "")
    while(ARGN)
        list(POP_FRONT ARGN symbol name type path)
        file(SHA256 ${path} tag)
        string(SUBSTRING ${tag} 0 16 tag)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
        if(name STREQUAL ".")
            set(name "")
        endif()
        # the tag is in the text, so that the file is compiled again when the bytes have changed
        string(APPEND EMBED_TEXT "EMBED(${plugin}_${symbol}, \"${path}\") /* ${tag} */\n")
        string(APPEND EMBED_ROWS "    {MK_STR(\"${name}\"), MK_STR(\"${type}; charset=utf-8\"), "
            "MK_STR(\"\\\"${tag}\\\"\"), "
            "${plugin}_${symbol}_begin, ${plugin}_${symbol}_end},\n")
    endwhile()
    set(EMBED_PLUGIN ${plugin})
    set(file ${CMAKE_BINARY_DIR}/gen/${plugin}_files.c)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/embedded.c.in ${file} @ONLY)
    target_sources(monkey-${plugin} PRIVATE ${file})
endfunction()
