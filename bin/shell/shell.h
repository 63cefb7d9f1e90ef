// SPDX-License-Identifier: Apache-2.0
#ifndef SHELL_SHELL_H
#define SHELL_SHELL_H

#include <monkey/base/buf.h>
#include <monkey/counters.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Text and numbers for people. What comes from a server, and so perhaps from one of its clients, is escaped: control
 * characters, and characters that are invisible or change the direction of a line, are shown as \xNN or \u{NNNN}.
 */
/* How text is shown. All zeros: for a file or a pipe. */
struct text_style {
    bool terminal; /* units with blanks, tables that fit */
    bool colours, unicode;
    size_t columns; /* of the terminal; 0: unknown */
};

enum text_colour { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, BLUE, CYAN, HEADING };

/* Appends the escape sequence of a colour; nothing without colours. */
void text_add_colour(struct mk_buf *out, const struct text_style *style, enum text_colour colour);
/* Appends a text, escaped. */
void text_add_safe(struct mk_buf *out, const char *text);
/* Appends a line of JSON; in its strings the same characters become \uNNNN, and malformed bytes \ufffd. */
void text_add_json(struct mk_buf *out, const char *line);
/* Returns the columns that an escaped text takes on a terminal. */
size_t text_width(const char *text);
/* Appends an escaped text, cut to `width` columns, the last of which shows that. Returns the columns that were used. */
size_t text_add_truncated(struct mk_buf *out, const char *text, size_t width, const struct text_style *style);

/* Appends 1.5 KB, of 1,024 bytes. */
void text_add_bytes(struct mk_buf *out, double n);
/* Appends 3 min 20 s with two units, 3 min with one. */
void text_add_seconds(struct mk_buf *out, long long n, unsigned n_units);
/* Appends the local time as 15:04:05.123. */
void text_add_clock(struct mk_buf *out, uint64_t unix_us);
/* Appends a bar of `width` columns, of which `share` (0 to 1) is filled. */
void text_add_bar(struct mk_buf *out, double share, size_t width, bool unicode);
/* Appends a column for each value, as high as its share of the greatest. */
void text_add_history(struct mk_buf *out, const double *values, size_t n, bool unicode);

/*
 * Short texts of numbers, by value.
 */
enum { CELL_BYTES = 64 };

struct cell {
    char text[CELL_BYTES];
};

/* Return what the functions text_add_...() append, and the suffix. */
struct cell cell_bytes(double n, const char *suffix);
struct cell cell_rate(double n, const char *suffix);
struct cell cell_seconds(long long n);
/* A dash for 0: no request has ended. */
struct cell cell_us(uint64_t us);

/*
 * A line of a screen: what is added is escaped, and cut at the end of the line.
 */
struct line {
    struct mk_buf *out;
    const struct text_style *style;
    size_t left; /* columns */
};

/* Begins a line of style->columns. */
struct line line_begin(struct mk_buf *out, const struct text_style *style);
/* Ends it. `fill`: with blanks to its end, in the colour of the moment. */
void line_end(struct line *l, bool fill);
/* Add text; with printf(). */
void line_add(struct line *l, enum text_colour colour, const char *text);
void line_addf(struct line *l, enum text_colour colour, const char *format, ...) MK_PRINTF(3, 4);
/* Adds a field of `width` columns, `right` aligned or not. */
void line_field(struct line *l, enum text_colour colour, const char *text, size_t width, bool right);
/* Adds blanks. */
void line_skip(struct line *l, size_t n);

/*
 * One line of an answer: a flat JSON object.
 */
enum { OBJECT_MEMBERS_MAX = 40 };

enum object_kind { OBJECT_STRING, OBJECT_NUMBER, OBJECT_BOOL };

struct object_member {
    const char *key, *value; /* a number as its digits, a bool as "true" or "false" */
    enum object_kind kind;
    char digits[32];
};

struct object {
    struct json_t *json; /* has the strings */
    unsigned n;
    struct object_member items[OBJECT_MEMBERS_MAX];
};

/*
 * Reads a line of `len` bytes. Members after the 40th are left out; a string ends at a NUL in it. Returns false if it
 * is no flat object of strings, numbers and bools, or a key has a byte other than visible ASCII; there is nothing to
 * release then.
 */
bool object_read(const char *line, size_t len, struct object *ret);
void object_release(struct object *o);

/* Returns the value of a member; NULL: there is none. */
const char *object_get(const struct object *o, const char *key);

/*
 * The connection to a server: a line is sent, objects come back, up to the one with "end".
 */
struct link {
    int fd;
    struct mk_buf in;
    /* Waits until `fd` can be read, in place of poll(2). Returns 0, or -errno: the answer is given up. NULL: none. */
    int (*wait)(struct link *l, void *ctx);
    void *wait_ctx;
    char path[512];
};

/*
 * Connects to the socket at `path`; NULL: to the first that exists of $MONKEY_SHELL_SOCKET, the user's and the
 * system's. Returns 0, or -errno after a message on stderr.
 */
int link_open(struct link *l, const char *path);
void link_close(struct link *l);

/* Is called for each object but the last, with the line as it came. Returns false to ask for the end of a stream. */
typedef bool (*link_fn)(struct object *o, const char *line, void *ctx);

/*
 * Sends a line and passes the answer on. `wait_fd` (-1: none): input there ends an answer that continues (trace).
 * Returns 1 (done), 0 (the command has failed: `error` has the sentence) or -errno (the connection is lost).
 */
int link_ask(struct link *l, struct mk_str line, int wait_fd, link_fn fn, void *ctx, struct mk_buf *error);

/* Appends words as a line that the server takes: a JSON array. */
void link_add_words(struct mk_buf *out, char *const *words, int n);

/*
 * Reads lines from the terminal: editing, history and completion by libedit. Nothing else includes it.
 */
/* Opens the history. Completion asks the server at `l` for its commands and their arguments. */
void edit_open(struct link *l);
/* Saves the history. */
void edit_close(void);
/* Returns the next line, to be freed; NULL: the end of input. */
char *edit_read(const char *prompt);

/*
 * Values of answers as text, by the unit at the end of their key: sent_bytes is SENT with 1.5 KB on a terminal, and
 * with 1.5K elsewhere, so that a column is one word for other programs.
 */
/* Appends a value. `n_units`: of a time on a terminal. */
void value_add(struct mk_buf *out, const struct object_member *m, const struct text_style *style, unsigned n_units);

/*
 * Answers as text for people: aligned columns, or a value in each line. On a terminal tables of connections fit its
 * width: columns that matter least are left out, then long texts are cut.
 */
enum { TABLE_COLUMNS_MAX = OBJECT_MEMBERS_MAX, TABLE_CELL_MAX = 512 };

struct table_row {
    struct table_row *next;
    char *cells[TABLE_COLUMNS_MAX]; /* NULL: empty */
    long long numbers[TABLE_COLUMNS_MAX];
};

struct table_column {
    char *key;
    size_t width;
    bool number, empty, left_out;
};

struct table {
    struct text_style style;
    bool stream; /* rows are printed as they come */
    bool fits;   /* it must fit the terminal */
    unsigned n_columns;
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct table_row *first, **last;
    size_t n_rows;
    bool began; /* the heading was printed: the widths stay */
};

void table_init(struct table *t, const struct text_style *style);
void table_release(struct table *t);
/* Adds a row. Returns false without memory. */
bool table_add(struct table *t, const struct object *o);
/* Sorts the rows by a column, numbers from the greatest; `key` with or without its unit. Returns false if there is
 * none. */
bool table_sort(struct table *t, const char *key);
/* Appends the rows so far, which are removed; the first time with the heading. */
void table_print(struct table *t, struct mk_buf *out);

/* Appends the members of an object, one in a line. */
void table_print_list(const struct object *o, const struct text_style *style, struct mk_buf *out);

/*
 * The terminal as a screen that is drawn as a whole: keys come one by one, the cursor is hidden, and the text before is
 * there again at the end. A signal that ends the program restores the terminal first.
 */
/* Stores the size of the terminal at stdout, 0 if it is unknown. `ret_rows` may be NULL. */
void screen_measure(size_t *ret_columns, size_t *ret_rows);

/* Begins to use stdin and stdout as a screen. Returns false if they are no terminal. */
bool screen_open(void);
/* Restores the terminal. */
void screen_close(void);
/* Draws lines, which end with "\n" and are not wider than the screen. Returns false if that fails. */
bool screen_draw(const struct mk_buf *lines);

enum screen_event {
    SCREEN_TIME,    /* the time has come */
    SCREEN_INPUT,   /* there is something to be read from the descriptor */
    SCREEN_RESIZED, /* draw again */
    SCREEN_END,     /* the user wants to leave: q, Enter, Control-C, Control-D, or the terminal is gone */
};

/* Waits until a time of CLOCK_MONOTONIC in seconds, a key, another size or input at `fd` (-1: none). */
enum screen_event screen_wait(int fd, double until);
/* Returns the time of CLOCK_MONOTONIC in seconds. */
double screen_time(void);

/*
 * Asks the server and shows the answer: as text, or as JSON for programs (--json).
 */
struct view_options {
    bool json;
    bool interactive; /* a line of input ends an answer that continues */
    bool full_screen; /* the terminal can be drawn as a whole */
    struct text_style style;
};

/*
 * Asks, and prints the answer on stdout, errors and warnings on stderr. Returns 1 (done), 0 (the command has failed) or
 * -errno (the connection is lost; it was reported).
 */
int view_ask(struct link *l, struct mk_str line, const struct view_options *options);

/*
 * Which paths keep the server busy, by samples of the requests under way, of bounded number. A path is found the more
 * often the longer its requests take: what is answered at once is not seen here. Older samples count less.
 */
enum { PATHS_MAX = 128, PATHS_CONNECTIONS_MAX = 200, PATHS_TEXT_BYTES = 256, PATHS_METHOD_BYTES = 24 };

struct paths_row {
    double weight;
    char method[PATHS_METHOD_BYTES], host[PATHS_TEXT_BYTES], path[PATHS_TEXT_BYTES];
};

/* Initialized with zeros. */
struct paths {
    struct paths_row rows[PATHS_MAX];
    unsigned n;
    double total;            /* weight of all requests that were seen */
    unsigned long n_samples; /* that were taken */
    double next_at;          /* when the next one may be taken: of CLOCK_MONOTONIC, in seconds */
};

/* Asks for the requests under way and adds them. Returns as link_ask(). */
int paths_sample(struct link *l, struct paths *paths);
/* Adds a request, in place of the path with the least weight if there is no room. */
void paths_add(struct paths *paths, const char *method, const char *host, const char *path);
/* Makes all that was added count less, before a sample is added. */
void paths_age(struct paths *paths);
/* Sorts the rows by weight, the greatest first. */
void paths_sort(struct paths *paths);

/*
 * The figures of a server at one moment, and how they have changed between two.
 */
enum {
    SAMPLE_HOSTS_MAX = 256,
    SAMPLE_HOST_BYTES = 256,
    SAMPLE_CLASSES = 6, /* of statuses: none, 1xx to 5xx */
    SAMPLE_STATES_MAX = 24,
    SAMPLE_TEXT_BYTES = 64,
};

/* What is counted by host. */
struct sample_counts {
    uint64_t classes[SAMPLE_CLASSES]; /* requests */
    uint64_t sent, received;          /* bytes of bodies */
    uint64_t durations;
    uint64_t buckets[MK_COUNTER_BUCKETS];
};

struct sample_host {
    char name[SAMPLE_HOST_BYTES];
    struct sample_counts counts;
};

struct sample_state {
    char name[SAMPLE_TEXT_BYTES];
    long long connections;
};

struct sample {
    double at; /* of CLOCK_MONOTONIC, in seconds */
    char version[SAMPLE_TEXT_BYTES], state[SAMPLE_TEXT_BYTES];
    char warning[4 * SAMPLE_TEXT_BYTES]; /* of the server: a worker does not answer; empty: none */
    long long process, uptime_s, workers, connections, under_way, memory_bytes;
    struct sample_counts total;
    uint64_t accepted, refused, timeouts;
    struct sample_state states[SAMPLE_STATES_MAX];
    struct sample_host hosts[SAMPLE_HOSTS_MAX]; /* further ones are in `total` only */
    unsigned n_states, n_hosts;
};

/* Asks the server. Returns 1, 0 (the server has no counters, or a command has failed) or -errno, as link_ask(). */
int sample_take(struct link *l, struct sample *ret);

/* What happened in a second. */
struct sample_rates {
    double requests, classes[SAMPLE_CLASSES], sent, received;
    bool timed;              /* there are durations: */
    uint64_t p50_us, p99_us; /* of the requests that have ended meanwhile */
};

/* `before` NULL: there was nothing before. A counter that is less than before, of another process, counts from 0. */
void sample_compare(const struct sample_counts *before, const struct sample_counts *now, double seconds,
                    struct sample_rates *ret);
/* Returns the counts of a host, or NULL. */
const struct sample_counts *sample_find(const struct sample *s, const char *host);

/*
 * What `top` shows, as text: pure functions of two samples.
 */
enum { TOP_HISTORY_MAX = 256 };

struct top_view {
    const struct sample *before, *now;
    struct paths *paths; /* are sorted */
    struct text_style style;
    size_t rows;                                             /* of the screen */
    double interval_s;                                       /* between two samples */
    double requests[TOP_HISTORY_MAX], sent[TOP_HISTORY_MAX]; /* in a second, of the samples so far, the newest last */
    unsigned n_history;
    double late_s;         /* how long the server has not answered; 0: it does */
    uint64_t unix_us;      /* the time of day */
    struct sample_rates r; /* of all hosts */
};

/* Compares the samples, and adds the rates to the history. */
void top_view_compare(struct top_view *v);
/* Appends one line, for a file or a pipe. */
void top_view_add_line(const struct top_view *v, struct mk_buf *out);
/* Appends a JSON object and the end of the line, for programs. */
void top_view_add_json(const struct top_view *v, struct mk_buf *out);

/*
 * `top` as a screen.
 */
/* Appends `rows` lines, of style.columns at most; three at least. */
void top_screen_draw(const struct top_view *v, struct mk_buf *out);

/*
 * Shows the load of the server live, until q is pressed.
 */
/*
 * Draws the screen every `seconds`. Elsewhere than on a terminal it writes a line each time, with --json an object,
 * until its output is closed, a signal ends it or, if both ends are a terminal, a line is entered. Returns as
 * view_ask().
 */
int top_run(struct link *l, double seconds, const struct view_options *options);

#endif
