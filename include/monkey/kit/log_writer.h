// SPDX-License-Identifier: Apache-2.0
/*
 * Logs with many lines: threads add them to rings in memory, and one thread writes them, so that no other waits for a
 * disk. (Messages of the server and of plugins are in the error log, <monkey/log.h>.)
 *
 *     thread ─► producer (rings for this thread and this log) ─┐
 *     thread ─► producer ──────────────────────────────────────┴─► target ─► file, pipe, socket
 *
 * A plugin has a writer, which writes all its logs. A target is found by its destination: generations that name the
 * same one share it, so that their lines go to one descriptor in order.
 *
 *     start          mk_log_writer_new()
 *     host_start     mk_log_target_get()         host_stop     mk_log_target_put()
 *     worker_start   mk_log_writer_start(), mk_log_producer_get()
 *     on_done        mk_log_producer_reserve(), mk_log_producer_send()
 *     worker_stop    mk_log_producer_put()
 *     stop           mk_log_writer_free()
 *
 * The thread sleeps until there is a line. Then it waits until a ring is half full, or for a time that is set, to write
 * several lines together. Lines that cannot be written wait in the rings, and are lost when these are full. A file that
 * was renamed or removed is opened again: all lines from before mk_log_writer_reopen() go to the old one. Failures and
 * the number of lost lines are in the error log.
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_LOG_WRITER_H
#define MONKEY_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/str.h"
#include "../counters.h"

MK_C_BEGIN

struct mk_log_writer;
struct mk_log_target;
struct mk_log_producer;

/* OFF is for settings: no target has it. */
enum mk_log_dest_kind { MK_LOG_DEST_OFF, MK_LOG_DEST_FILE, MK_LOG_DEST_STDOUT, MK_LOG_DEST_STDERR, MK_LOG_DEST_SYSLOG };

struct mk_log_dest {
    enum mk_log_dest_kind kind;
    struct mk_str path; /* of a file, or of the Unix datagram socket of syslog; absolute, NUL-terminated; else empty */
};

struct mk_log_writer_type {
    const char *name;                   /* of the plugin, for messages: "logger" */
    const char *thread_name;            /* 15 bytes at most */
    const struct mk_counter_info *lost; /* counts lost lines, with the label `log`; NULL: only the error log has them */
    size_t data_bytes;                  /* what the plugin keeps for each producer, zeroed: mk_log_producer_data() */
    /*
     * Prepares that for a new producer, and releases what it has got. The producer is not used meanwhile; they must not
     * call functions of a writer. NULL: nothing.
     */
    void (*init)(struct mk_log_producer *producer, void *owner);
    void (*release)(struct mk_log_producer *producer);
    /*
     * Is called after each attempt to write, also when the producer was put: there may be room again. It may add a line
     * and returns whether it has; it must not call other functions of a writer. In the writer's thread, or in that
     * which puts a target or ends the writer. NULL: nothing.
     */
    bool (*on_written)(struct mk_log_producer *producer);
};

/* Returns a writer without a thread; NULL without memory. `type` must stay. */
MK_API struct mk_log_writer *mk_log_writer_new(const struct mk_log_writer_type *type);
/* Stops and frees it. All targets and producers have been put. */
MK_API void mk_log_writer_free(struct mk_log_writer *writer);

/* Starts the thread if it does not run. Returns 0 or -errno. Any thread. */
MK_API int mk_log_writer_start(struct mk_log_writer *writer);
/*
 * Writes the lines that wait, for a second at most, and ends the thread. Producers may continue to add lines, which
 * wait for the next start. Not in workers.
 */
MK_API void mk_log_writer_stop(struct mk_log_writer *writer);
/* Sets how long a line may wait for others, at first 200 ms; from the next wait on. Any thread. */
MK_API void mk_log_writer_set_flush(struct mk_log_writer *writer, uint32_t flush_ms);
/* Has all files opened again after the lines that wait were written to the old ones. Does not wait. Any thread. */
MK_API void mk_log_writer_reopen(struct mk_log_writer *writer);

/*
 * Returns the log of that destination, with a reference; makes it if there is none. The path of a standard stream
 * (`/dev/stdout`) is that stream. NULL without memory. Any thread.
 */
MK_API struct mk_log_target *mk_log_target_get(struct mk_log_writer *writer, const struct mk_log_dest *dest);
/*
 * Returns 0 if the log of that destination is open, or could be opened by this process now; else an -errno as of
 * mk_file_check_output(). Creates nothing. Any thread.
 */
MK_API int mk_log_target_check(struct mk_log_writer *writer, const struct mk_log_dest *dest);
/*
 * Opens a file now and not with the first line, in a process that gives up root. A file that this creates belongs to
 * the user. Does nothing if it is open. Before mk_log_writer_start(). Returns 0 or -errno.
 */
MK_API int mk_log_target_open(struct mk_log_target *target, uint32_t uid, uint32_t gid);
/*
 * Releases a reference, after all producers of the caller were put. The log is closed after its last line: by the
 * thread, or if that does not run by this call, which may block then. Any thread.
 */
MK_API void mk_log_target_put(struct mk_log_target *target);

/*
 * Returns the producer of that owner for a log, with a reference; makes it if there is none. The owner is the thread
 * that adds the lines (its loop), or several under their own lock. `bytes_max`, at least 32 KB, is how much may
 * wait, from now on. NULL without memory. The owner's thread.
 */
MK_API struct mk_log_producer *mk_log_producer_get(struct mk_log_target *target, void *owner, size_t bytes_max);
/* Releases a reference. The lines that wait will be written. The owner's thread. */
MK_API void mk_log_producer_put(struct mk_log_producer *producer);

/*
 * Returns room for a line of at most `bytes`; mk_log_producer_send() follows. NULL: too much waits, or there is no
 * memory; the line is counted as lost. With `may_exceed` twice the maximum may wait. The owner's thread.
 */
MK_API char *mk_log_producer_reserve(struct mk_log_producer *producer, size_t bytes, bool may_exceed);
/* Adds the line, or lines, of `bytes` with their newlines. The owner's thread. */
MK_API void mk_log_producer_send(struct mk_log_producer *producer, size_t bytes);

/* Returns what the plugin keeps for a producer. Any thread. */
MK_API void *mk_log_producer_data(struct mk_log_producer *producer);
/* Return how many bytes wait to be written, and how many may. Any thread. */
MK_API uint64_t mk_log_producer_waiting(const struct mk_log_producer *producer);
MK_API size_t mk_log_producer_bytes_max(const struct mk_log_producer *producer);

MK_C_END

#endif
