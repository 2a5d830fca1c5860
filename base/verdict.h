/* verdict.h - the result for a recipient, from the reply parser to the bounce.
 *
 * A verdict never changes once it is made; the recipients of one transaction share one.
 *
 * OWNERSHIP  Counted. verdict_new() gives one reference, verdict_ref() another; each is returned
 *            with verdict_unref(). The strings belong to the verdict.
 * THREAD     Any; the count is atomic.
 * ERRORS     None. Text and host are sanitised and cut when the verdict is made: printable ASCII
 *            and UTF-8 only, controls become '?', at most VERDICT_TEXT_MAX bytes.
 * SEE        RFC 5321 4.2; RFC 3463 (enhanced codes); RFC 3464 2.3.
 */
#ifndef BASE_VERDICT_H
#define BASE_VERDICT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { VERDICT_TEXT_MAX = 1024, VERDICT_HOST_MAX = 300 };

enum verdict_class {
	VERDICT_SENT,	  /* a positive final reply */
	VERDICT_DEFERRED, /* try again */
	VERDICT_FAILED,	  /* never will be */
	VERDICT_IN_DOUBT, /* all was sent, the final reply never came */
	VERDICT_CLASSES
};

/* The command that was answered: what a reply speaks of where it does not say so itself. */
enum verdict_stage {
	VERDICT_AT_UNKNOWN,  /* nobody knows any more: the queue on disk has no room for it */
	VERDICT_AT_NONE,     /* none was: our own words, whomever they cite */
	VERDICT_AT_GREETING, /* or EHLO, STARTTLS, AUTH: before there was any mail */
	VERDICT_AT_MAIL,
	VERDICT_AT_RCPT,
	VERDICT_AT_DATA, /* the command alone */
	VERDICT_AT_END,	 /* of the content: the dot, a chunk */
	VERDICT_STAGES
};

struct verdict {
	atomic_int refs;
	enum verdict_class class;
	enum verdict_stage stage;
	int code;	  /* of the reply, 200 to 599; 0 when there was none */
	char dsn[12];	  /* enhanced code, "5.1.2"; made from the class where the peer gave none */
	const char *host; /* who said so, "name[address]:port", or "" when it was ourselves */
	const char *text; /* the reply after its code, lines joined by a blank, or our own words */
	int64_t when_ms;  /* wall clock */
};

struct verdict *verdict_new(enum verdict_class, int code, const char *dsn, const char *host,
			    const char *text);
/* dsn may be NULL: x.0.0 of the class. host may be NULL. */

struct verdict *verdict_printf(enum verdict_class, int code, const char *dsn, const char *host,
			       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

struct verdict *verdict_at(enum verdict_class, int code, const char *dsn, const char *host,
			   const char *text, int64_t when_ms);
/* The same, of another time: what is read back from the queue. */

struct verdict *verdict_answering(enum verdict_stage, enum verdict_class, int code, const char *dsn,
				  const char *host, const char *text);
/* A reply to that command. */

struct verdict *verdict_reworded(const struct verdict *, enum verdict_class, const char *dsn,
				 const char *host, const char *text);
/* The same in other words: code, command and time are kept. */

bool verdict_cites_dsn(const struct verdict *);
/* The text begins with an enhanced code: the peer's own, which dsn differs from where the class is not
 * that of the reply (a login that is refused for good puts mail off). */

bool verdict_lacks_names(const struct verdict *);
/* For now, since a look-up by DNS had no answer, or too many are under way (RFC 3463, X.4.3): no host was asked. */

struct verdict *verdict_ref(struct verdict *); /* NULL stays NULL */
void verdict_unref(struct verdict *);	       /* NULL is allowed */
const char *verdict_class_name(enum verdict_class);
/* "sent", "deferred", "bounced", "in_doubt": the log's events. */

bool verdict_class_is_name(const char *);

#endif
