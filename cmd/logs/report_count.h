/* report_count.h - a day of the log in figures.
 *
 *	queued                   received, or made here: reports, copies for an archive
 *	sent, deferred, bounced, in_doubt   of recipients: each attempt counts
 *	reject, auth, filter, limit         what was refused, and why
 *
 * The figures are those of pflogsumm, where that has them.
 *
 * OWNERSHIP  report_count_fini() frees the tables.
 * THREAD     Main.
 * ERRORS     None. Tables grow with the number of senders, logins and domains of the day.
 * SEE        base/reason.h: the words for reasons.
 */
#ifndef CMD_LOGS_REPORT_COUNT_H
#define CMD_LOGS_REPORT_COUNT_H

#include "base/keyed_hash.h"
#include "cmd/logs/log_pass.h"

/* T(name, word, what is printed behind the number) */
#define REPORT_TOTALS(T)                                                                           \
	T(RECEIVED, "received", "messages received")                                               \
	T(BYTES, "received_bytes", "bytes of these")                                               \
	T(MADE, "made", "messages made here: reports, copies for an archive")                      \
	T(SENT, "sent", "deliveries")                                                              \
	T(DEFERRED, "deferred", "deferrals")                                                       \
	T(BOUNCED, "bounced", "bounces")                                                           \
	T(IN_DOUBT, "in_doubt", "deliveries in doubt")                                             \
	T(REJECTED, "rejected", "refusals")                                                        \
	T(LOGINS_FAILED, "logins_failed", "logins that failed")

enum report_total {
#define T(name, ...) REPORT_##name,
	REPORT_TOTALS(T)
#undef T
		REPORT_TOTAL_COUNT
};

enum { REPORT_COLUMNS = 3 };

/* T(name, word, title, columns) */
#define REPORT_TABLES(T)                                                                           \
	T(SENDERS, "senders", "Busiest senders", {"messages", "bytes"})                            \
	T(LOGINS, "logins", "Busiest logins", {"messages", "bytes"})                               \
	T(DESTINATIONS, "destinations", "Destinations", {"sent", "deferred", "bounced"})           \
	T(DEFERRALS, "deferrals", "Why mail was put off", {"times"})                               \
	T(BOUNCES, "bounces", "Why mail failed", {"times"})                                        \
	T(REFUSALS, "refusals", "What was refused", {"times"})                                     \
	T(FILTERS, "filters", "What filters did", {"times"})                                       \
	T(LIMITS, "limits", "Who was above a limit", {"times"})                                    \
	T(GUESSES, "failed_logins", "Whose login failed", {"times"})

enum report_table {
#define T(name, ...) REPORT_OF_##name,
	REPORT_TABLES(T)
#undef T
		REPORT_TABLE_COUNT
};

struct report_row {
	char *name;
	char *example; /* a reply, or NULL */
	int64_t n[REPORT_COLUMNS];
	UT_hash_handle hh;
};

struct report_count {
	int64_t total[REPORT_TOTAL_COUNT];
	struct report_row *table[REPORT_TABLE_COUNT];
	struct buf name, value;
	char *queued; /* the id whose lines of queued are at hand */
	bool made;    /* that message was made here */
	char *login;  /* its login, or NULL */
};

void report_count_line(void *report, const struct log_line *, const char *text, size_t len);
/* A log_pass_take. */

void report_count_sort(struct report_count *); /* the largest first */
void report_count_fini(struct report_count *);

#endif
