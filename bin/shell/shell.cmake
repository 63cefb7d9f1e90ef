# SPDX-License-Identifier: Apache-2.0
# The program behind `monkey shell`, in the folder of the plugins, with libedit and libjansson. All but main() and
# line editing are an object library, which the unit tests use as well.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
set(program_sources ${CMAKE_CURRENT_LIST_DIR}/main.c ${CMAKE_CURRENT_LIST_DIR}/edit.c)
list(REMOVE_ITEM sources ${program_sources})
add_library(monkey-shell-parts OBJECT ${sources})
target_include_directories(monkey-shell-parts PRIVATE ${CMAKE_SOURCE_DIR}/include)
add_executable(monkey-shell ${program_sources} $<TARGET_OBJECTS:monkey-shell-parts>)
target_include_directories(monkey-shell PRIVATE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(monkey-shell PRIVATE monkey-kit monkey-static m)
mk_link_library(monkey-shell editline/readline.h edit libedit-dev "the shell of the server"
    "build without the plugin cheetah (-D MK_MODULES=...)")
mk_link_library(monkey-shell jansson.h jansson libjansson-dev "the shell of the server"
    "build without the plugin cheetah (-D MK_MODULES=...)")
set_target_properties(monkey-shell PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/monkey)
install(TARGETS monkey-shell RUNTIME DESTINATION lib/monkey)
