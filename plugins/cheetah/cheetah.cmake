# SPDX-License-Identifier: Apache-2.0
target_link_libraries(monkey-cheetah PRIVATE monkey-inspect)
target_link_options(monkey-cheetah PRIVATE -Wl,--exclude-libs,ALL)
