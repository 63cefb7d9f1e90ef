# SPDX-License-Identifier: Apache-2.0
# The program behind `monkey shell`, beside the plugins; the only one that links libedit.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_executable(monkey-shell ${sources})
target_include_directories(monkey-shell PRIVATE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(monkey-shell PRIVATE monkey-static)
mk_link_library(monkey-shell editline/readline.h edit libedit-dev "the shell of the server"
    "build without the plugin cheetah (-D MK_MODULES=...)")
set_target_properties(monkey-shell PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/monkey)
install(TARGETS monkey-shell RUNTIME DESTINATION lib/monkey)
