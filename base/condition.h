/* condition.h - what keeps mail from being taken or sent, or will soon: one list of the whole program.
 *
 *	whoever notices it: condition_set() --> [ list ] --> conditions_take(): stats, page, top, /healthz
 *	             ends:  condition_clear()      +--> log: condition; metric: conditions
 *
 * A condition has a name, and a subject where there may be several of that name: a filter, a file, a login.
 * Of one name and subject there is one at most; another row of the same name takes its place, since the
 * same thing may do more or less harm to mail, and it keeps the time since when it is so.
 *
 * OWNERSHIP  Texts are copied. A look is its owner's: conditions_fini().
 * THREAD     Any; a lock is held for as long as the list is changed or copied. condition_stops_mail() waits
 *            for nobody.
 * ERRORS     Above CONDITIONS_MAX no more are taken in: it is clear enough by then that something is wrong.
 * SEE        sluice(8), "Conditions".
 */
#ifndef BASE_CONDITION_H
#define BASE_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

/* C(row, name, no new mail is taken while it lasts, what it does to mail, what to do);
 * rows of one name stand together. Sentences without their full stop. */
#define CONDITIONS(C)                                                                              \
	C(filter_defers, "filter_away", true,                                                      \
	  "mail that is to pass this filter is refused for now, with 451",                         \
	  "start the filter; sluice milter shows how it is, and mail is taken as soon as it "      \
	  "answers")                                                                               \
	C(filter_rejects, "filter_away", true,                                                     \
	  "mail that is to pass this filter is refused for good, with 550",                        \
	  "start the filter; default_action = \"tempfail\" would have clients try again")          \
	C(filter_holds, "filter_away", false, "mail that is to pass this filter is put on hold",   \
	  "start the filter; then sluice queue release --queue hold --refilter")                   \
	C(filter_passes, "filter_away", false, "mail is taken without having passed this filter",  \
	  "start the filter; sluice milter shows how it is")                                       \
	C(disk_full, "disk_full", true,                                                            \
	  "new mail is refused for now, with 452; what is in the queue is delivered",              \
	  "make room on the disk of the queue; mail is taken again above queue_minfree")           \
	C(disk_failing, "disk_failing", true,                                                      \
	  "new mail is refused for now, with 452, and what becomes of the queue can't be "         \
	  "recorded",                                                                              \
	  "look at the log and at the kernel's for errors of the disk; writing is tried again by " \
	  "itself")                                                                                \
	C(disk_stands, "disk_stands", true,                                                        \
	  "clients wait for the answer to their mail, and orders on the queue for theirs: the "    \
	  "disk "                                                                                  \
	  "of the queue has not answered for ten seconds",                                         \
	  "look at the kernel's log, and at what the disk depends on: a file system that is "      \
	  "frozen, a network, a snapshot; all goes on when it answers")                            \
	C(queue_incomplete, "queue_incomplete", false,                                             \
	  "messages that this start could not read, or not make safe, wait for the next one; "     \
	  "other mail is taken and delivered, and the queue keeps all of its files",               \
	  "look at the log and at the kernel's for errors of the disk, then sluice restart")       \
	C(copy_stops, "nats_away", true,                                                           \
	  "new mail is refused for now, with 452, since NATS takes no copy of it",                 \
	  "start NATS, or see to what the log's event replica says; the copy is made up by "       \
	  "itself")                                                                                \
	C(copy_away, "nats_away", false,                                                           \
	  "mail is taken, and its copy in NATS is behind: it would be lost with this machine",     \
	  "start NATS, or see to what the log's event replica says; the copy is made up by "       \
	  "itself")                                                                                \
	C(draining, "draining", true,                                                              \
	  "no new mail is taken; what is being worked on is delivered or put off, and then the "   \
	  "relay stops",                                                                           \
	  "nothing: it was told to, by sluice stop --drain")                                       \
	C(node_waits, "node_waits", true,                                                          \
	  "this node neither takes nor sends mail: it has no epoch, and another may have its "     \
	  "queue",                                                                                 \
	  "start NATS; sluice node list says who has the queue, and whether it waits for sluice "  \
	  "node adopt")                                                                            \
	C(redis_away, "redis_away", false,                                                         \
	  "mail is taken and sent; limits are kept and hosts are learnt about by each node alone", \
	  "start Redis, or see to cluster { redis } and what the log's event cluster says")        \
	C(redis_full, "redis_full", false,                                                         \
	  "mail is taken and sent; limits are kept and hosts are learnt about by each node alone", \
	  "give Redis more memory, or room on its disk")                                           \
	C(certificate_expired, "certificate_expiry", false,                                        \
	  "clients that look at this certificate send no mail",                                    \
	  "renew the certificate, where it lies")                                                  \
	C(certificate_expires, "certificate_expiry", false,                                        \
	  "clients that look at this certificate send no mail once it has expired",                \
	  "renew the certificate, where it lies; it is read anew by itself")                       \
	C(certificate_early, "certificate_expiry", false,                                          \
	  "clients that look at this certificate send no mail until it is valid",                  \
	  "put a certificate there that is valid now, or see to the clock")                        \
	C(certificate_kept, "certificate_refused", false,                                          \
	  "sessions have the certificate that was read before, until the next start",              \
	  "put a certificate and its key there that can be read and are valid now")                \
	C(secret_unreadable, "secret_unreadable", false,                                           \
	  "mail for the next hop that wants this login waits in the queue",                        \
	  "let the relay's user read this file: sluice check says how")                            \
	C(token_missing, "token_missing", false,                                                   \
	  "mail for the next hop that wants this login waits in the queue",                        \
	  "see to what the endpoint says; sluice explain shows which mail waits")                  \
	C(token_unsaved, "token_unsaved", false,                                                   \
	  "mail goes on for as long as the relay runs; after a start this login may have ended",   \
	  "make room for the folder tokens of the queue, and let the relay's user write there; "   \
	  "writing is tried again by itself")                                                      \
	C(socketmap_away, "socketmap_away", false,                                                 \
	  "mail for which this server of tables would be asked is refused for now, with 451",      \
	  "start the server, or see to what it says; it is asked again by itself")                 \
	C(dkim_key_unreadable, "dkim_key_unreadable", false,                                       \
	  "mail that this key of dkim_keys is to sign is refused for now, with 451",               \
	  "let the relay's user read this file; it is tried again with the next such message")     \
	C(tables_stale, "tables_stale", false,                                                     \
	  "mail is handled as this table said before it was changed",                              \
	  "mend the line; the table is read anew by itself")

enum condition {
#define C(row, ...) CONDITION_##row,
	CONDITIONS(C)
#undef C
		CONDITION_COUNT
};

enum { CONDITIONS_MAX = 100 };

const char *condition_name(enum condition);
const char *condition_effect(enum condition);
const char *condition_remedy(enum condition);
bool condition_stops(enum condition); /* no new mail is taken while it lasts */

void condition_set(enum condition, const char *subject, const char *reason);
/* The condition holds. subject: "" where there can be but one; reason: what was seen, in words, or NULL. To say
 * it again changes nothing, but the reason. */

void condition_clear(enum condition, const char *subject);
/* Nothing of this row's name and this subject is so any more; it need not have been. */

void condition_turn(enum condition, bool on, const char *subject, const char *reason);
/* Set it, or clear it. */

void condition_clear_all(enum condition); /* nothing of this row's name, whatever the subject */

void conditions_end(void);
/* The relay ends, and nothing is known any more: who reads the log hears of no other end. A start looks anew. */

bool condition_stops_mail(void); /* is there one now? */

struct condition_row {
	enum condition is;
	char *subject, *reason; /* reason: or NULL */
	int64_t since_ms;	/* wall clock */
};

struct conditions {
	struct condition_row *row; /* those that stop mail first, then the oldest first */
	int n;
};

void conditions_take(struct conditions *); /* as it is now */
void conditions_fini(struct conditions *);

#endif
