# SPDX-License-Identifier: Apache-2.0
# The sources of the server, by the builds that have them. A source that is in no list is an error.

# In every build.
set(MK_CORE_SOURCES
    base/address.c base/arena.c base/base64.c base/buf.c base/cgroup.c base/civil.c base/clock.c
    base/counter_labels.c base/counters.c base/counters_memory.c base/escape.c base/file.c base/library.c base/log.c
    base/log_limit.c base/memory.c base/path_walk.c base/pattern.c base/pattern_index.c base/poll.c base/pool.c
    base/random.c base/random_pool.c base/sha1.c base/siphash.c base/str.c base/thread_start.c conf/bind.c
    conf/diagnostics.c conf/expand.c conf/foreign_syntax.c conf/foreign_words.c conf/load.c conf/memory.c
    conf/reference.c conf/rule_index.c conf/scan.c conf/schema.c conf/section_values.c conf/short_form.c conf/show.c
    conf/skipped_files.c conf/unknown_key.c conf/value.c http/block.c http/client_addr.c http/conn.c
    http/conn_log.c http/context.c
    http/encoded_slash.c http/file.c http/file_read.c http/filter.c http/h1/h1.c http/h1/send.c http/h1/splice.c
    http/h1/tunnel.c http/handshake.c http/http.c http/interim.c http/message/accept.c http/message/chunked.c
    http/message/date.c http/message/forwarded.c http/message/mime.c http/message/multipart.c http/message/parse.c
    http/message/preface.c http/message/proxy_protocol.c http/message/range.c http/message/request_head.c
    http/message/status.c http/message/uri.c http/message/validators.c http/parts.c http/reason.c
    http/recent_windows.c http/request.c http/request_extra.c http/request_headers.c http/request_id.c
    http/response.c http/trailers.c http/tunnel.c loop/epoch.c loop/epoch_join.c loop/job.c loop/loop.c
    loop/thread_pool.c loop/timer.c net/addr.c net/announce.c net/dial.c net/listen.c net/port_owner.c
    net/resolver.c net/sock.c server/check.c server/commands.c server/counts.c server/generation/bound_hosts.c
    server/generation/content_order.c server/generation/generation.c server/generation/generation_load.c
    server/generation/h2_keys.c server/generation/handlers.c server/generation/host.c server/generation/host_log.c
    server/generation/path_limits.c server/generation/process_keys.c server/generation/settings.c
    server/generation/spool_budget.c server/generation/spools.c server/generation/unread_files.c
    server/generation/user.c server/generation/vhost.c server/hooks/conn_hooks.c server/hooks/fallback.c
    server/hooks/path_hooks.c server/hooks/request_hooks.c server/hooks/request_rewrite.c server/hooks/sources.c
    server/inspect_core.c server/listen/acceptor.c server/listen/foreign_listen.c server/listen/handover.c
    server/listen/inherited.c server/listen/limits.c server/listen/listeners.c server/listen/names.c
    server/listen/own_address.c server/listen/standard_fds.c server/plugins/autoload.c server/plugins/build_info.c
    server/plugins/load_order.c server/plugins/module.c server/plugins/plugin_sockets.c
    server/plugins/plugin_states.c server/plugins/plugins.c server/plugins/transports.c server/reload.c
    server/server.c server/show.c server/worker/balancer.c server/worker/caller_thread.c
    server/worker/control_thread.c server/worker/cpus.c server/worker/heap_trim.c server/worker/receiver.c
    server/worker/request_ref.c server/worker/thread.c server/worker/worker.c server/worker/worker_reload.c)

# One of each pair, by what a build has. The second has the same functions, which do without, or say that it is absent.
set(with_h2
    http/h2/alloc.c http/h2/control.c http/h2/evict.c http/h2/flood.c http/h2/flood_counters.c http/h2/frame.c
    http/h2/hpack.c http/h2/hpack_table.c http/h2/huffman.c http/h2/output.c http/h2/priority.c http/h2/recv.c
    http/h2/request_head.c http/h2/response.c http/h2/session.c http/h2/stream.c http/h2/streams.c
    http/h2/timeout.c http/h2/tunnel.c http/h2/turn.c)

# What clients of other servers need, and the server itself does not: in the kit (lib/kit/kit.cmake), with a copy of its
# own of the parser of fields, since a second caller would keep the compiler from inlining that of requests.
set(MK_CORE_FOR_KIT http/message/parse.c http/message/response_parser.c)
# For programs that have parse.c already.
set(MK_RESPONSE_PARSER ${CMAKE_CURRENT_LIST_DIR}/http/message/response_parser.c)

set(with_modules server/plugins/module_open.c)
set(without_modules server/plugins/module_open_absent.c)
set(with_manual server/plugins/manual_tables.c)
set(without_manual server/plugins/manual_file.c)
set(without_h2 http/h2/absent.c)

# With the libraries and sanitizers that a build has.
set(with_pcre2 base/regex.c)
set(with_asan base/asan.c)

file(GLOB_RECURSE left RELATIVE ${CMAKE_CURRENT_LIST_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
list(REMOVE_ITEM left ${MK_CORE_SOURCES} ${MK_CORE_FOR_KIT} ${with_pcre2} ${with_asan}
    ${with_modules} ${without_modules} ${with_manual} ${without_manual} ${with_h2} ${without_h2})
if(left)
    list(JOIN left ", " left)
    message(FATAL_ERROR "lib/core/core.cmake has no list for ${left}")
endif()

if(MK_EXPORT) # programs that export nothing can open no modules
    list(APPEND MK_CORE_SOURCES ${with_modules})
else()
    list(APPEND MK_CORE_SOURCES ${without_modules})
endif()
if(MK_MANUAL)
    list(APPEND MK_CORE_SOURCES ${with_manual})
else()
    list(APPEND MK_CORE_SOURCES ${without_manual})
endif()
if(MK_HTTP2 AND NOT MK_LEAN)
    list(APPEND MK_CORE_SOURCES ${with_h2})
else()
    list(APPEND MK_CORE_SOURCES ${without_h2})
endif()
if(MK_REGEX AND NOT MK_LEAN)
    find_path(PCRE2_INCLUDE_DIR pcre2.h)
    if(NOT PCRE2_INCLUDE_DIR)
        message(FATAL_ERROR "pcre2.h is missing: install it (Debian: libpcre2-dev), or build without regular "
            "expressions (-D MK_REGEX=OFF)")
    endif()
    add_compile_definitions(MK_REGEX)
    list(APPEND MK_CORE_SOURCES ${with_pcre2})
    set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/base/regex.c APPEND PROPERTY
        INCLUDE_DIRECTORIES ${PCRE2_INCLUDE_DIR})
endif()
if(MK_HAS_ASAN)
    list(APPEND MK_CORE_SOURCES ${with_asan})
endif()
list(SORT MK_CORE_SOURCES) # neighbours share pages
foreach(name IN ITEMS MK_CORE_SOURCES MK_CORE_FOR_KIT)
    list(TRANSFORM ${name} PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
endforeach()
