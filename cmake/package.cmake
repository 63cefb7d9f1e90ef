# SPDX-License-Identifier: Apache-2.0
# Installs the libraries, and the package by which find_package(monkey) finds them. What is a target of it has the name
# monkey::NAME there.
include(CMakePackageConfigHelpers)
add_library(monkey-includes INTERFACE)
set(exported monkey-includes monkey-static monkey-shared ${libraries})
list(REMOVE_ITEM exported monkey)
foreach(library IN LISTS exported)
    if(NOT TARGET ${library})
        continue()
    endif()
    string(REGEX REPLACE "^monkey-" "" name ${library})
    string(REGEX REPLACE "^shared$" "monkey" name ${name})
    string(REGEX REPLACE "^includes$" "headers" name ${name})
    set_target_properties(${library} PROPERTIES EXPORT_NAME ${name}
        INTERFACE_INCLUDE_DIRECTORIES $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
    install(TARGETS ${library} EXPORT monkey INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endforeach()

if(MK_WEBSOCKET AND TARGET monkey-kit) # by name, since zlib is elsewhere on the machine of a program
    string(REPLACE "," "$<COMMA>" flags "${MK_KIT_LIBS}")
    set_property(TARGET monkey-kit PROPERTY INTERFACE_LINK_LIBRARIES
        $<BUILD_INTERFACE:$<LINK_ONLY:${MK_z_LIBRARY}>> $<INSTALL_INTERFACE:$<LINK_ONLY:${flags}>>)
endif()

set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/monkey)
file(RELATIVE_PATH MK_CMAKE_PREFIX /${folder} /)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    file(RELATIVE_PATH MK_CMAKE_PREFIX ${folder} ${CMAKE_INSTALL_PREFIX})
endif()
string(REGEX REPLACE "/$" "" MK_CMAKE_PREFIX "${MK_CMAKE_PREFIX}")
configure_file(cmake/monkey-config.cmake.in ${CMAKE_BINARY_DIR}/gen/monkey-config.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/gen/monkey-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/gen/monkey-config.cmake ${CMAKE_BINARY_DIR}/gen/monkey-config-version.cmake
    DESTINATION ${folder})
install(EXPORT monkey DESTINATION ${folder} NAMESPACE monkey:: FILE monkey-targets.cmake)
