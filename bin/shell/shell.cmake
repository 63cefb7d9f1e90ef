# SPDX-License-Identifier: Apache-2.0
# The program behind `monkey shell`, beside the plugins; the only one that links libedit.
find_path(EDIT_INCLUDE_DIR editline/readline.h)
find_library(EDIT edit)
if(NOT EDIT_INCLUDE_DIR OR NOT EDIT)
    message(FATAL_ERROR "<editline/readline.h> or libedit is missing: install it (Debian: libedit-dev), or build "
        "without the plugin cheetah (-D MK_MODULES=...)")
endif()
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_executable(monkey-shell ${sources})
target_include_directories(monkey-shell PRIVATE ${CMAKE_SOURCE_DIR}/include ${EDIT_INCLUDE_DIR})
target_link_libraries(monkey-shell PRIVATE monkey-static ${EDIT})
set_target_properties(monkey-shell PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/monkey)
install(TARGETS monkey-shell RUNTIME DESTINATION lib/monkey)
