/* jetstream.h - a NATS server with JetStream, as its clients see it, at its worst.
 *
 *	request -- at once, in the order of arrival --> streams, in memory
 *	                                                   |  a sync, seldom: jetstream_sync()
 *	                                                   v
 *	jetstream_crash(): what was synced, and of each stream a part of what came behind that
 *
 * It acknowledges before it syncs, as the original does (sync_interval, two minutes). What a crash of all servers, or a
 * leader that lacks the tail, leaves is a prefix of what was done to a stream, each stream for itself; numbers are
 * given again then. A bucket is a stream that keeps one message a subject.
 *
 * OWNERSHIP  Its own. jetstream_begin() ends the one before.
 * THREAD     One.
 * ERRORS     enum jetstream_answer. What it does is done when the call returns; who calls loses requests and answers
 *            on the way (nats_client.c).
 */
#ifndef TESTS_UNIT_HISTORIES_JETSTREAM_H
#define TESTS_UNIT_HISTORIES_JETSTREAM_H

#include "tests/unit/spool/chance.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jetstream_answer {
	JETSTREAM_DONE,
	JETSTREAM_NOT_FOUND, /* stream, message or consumer */
	JETSTREAM_NO_STREAM, /* no stream takes this subject */
	JETSTREAM_FULL,
	JETSTREAM_OTHER, /* the last message of this subject is another one; the stream is there, and other */
};

struct jetstream_blob {
	int refs;
	char *subject;
	size_t len;
	size_t kept; /* of these bytes; a long row of zeros at the end is left out */
	char bytes[];
};

struct jetstream_message {
	uint64_t sequence;
	struct jetstream_blob *blob;
};

struct jetstream_content {
	char *subjects, *description;
	uint64_t configs; /* how often these were changed */
	uint64_t last;
	size_t n, cap;
	struct jetstream_message *message; /* in order of their numbers */
};

struct jetstream_op;

struct jetstream_stream {
	char *name;
	bool keeps_one; /* a subject */
	bool gone;
	struct jetstream_content now, stable;
	bool stable_there;	 /* the stream itself is stable */
	struct jetstream_op *op; /* since the last sync */
	size_t nop, op_cap;
	uint64_t reader;		 /* the number that its consumer has come to */
	uint64_t acknowledged;		 /* by who reads */
	bool read;			 /* there is a consumer */
	struct jetstream_content before; /* as its new leader knows it, */
	bool behind;			 /* until something is to be changed */
};

void jetstream_begin(void);
void jetstream_room(
	int64_t bytes); /* what all streams may take; refused beyond it: JETSTREAM_FULL */
void jetstream_limit(int64_t bytes); /* likewise, of each stream that is no bucket */
int64_t jetstream_bytes(void);

enum jetstream_answer jetstream_add(const char *name, const char *subjects, const char *description,
				    bool keeps_one);
enum jetstream_answer jetstream_update(const char *name, const char *subjects,
				       const char *description);
enum jetstream_answer jetstream_delete(const char *name);

struct jetstream_blob *jetstream_blob(const char *subject, const void *, size_t len);
void jetstream_drop(struct jetstream_blob *); /* NULL is allowed */

enum jetstream_answer jetstream_publish(struct jetstream_blob *, const uint64_t *replaces,
					uint64_t *sequence);
/* replaces: the number that the last message of this subject has, 0: there is none; NULL: whatever it is. */

enum jetstream_answer jetstream_purge(const char *name, const char *filter, uint64_t before,
				      uint64_t keep);
/* filter, of subjects, NULL: any; before 0: all. The last `keep` of them stay. */

struct jetstream_stream *jetstream_find(const char *name); /* or NULL */
const char *jetstream_name(int n); /* of the nth stream; NULL: there is none */
const struct jetstream_message *jetstream_last(const struct jetstream_stream *,
					       const char *filter); /* or NULL */
bool jetstream_matches(const char *filter, const char *subject);

const struct jetstream_content *jetstream_seen(const struct jetstream_stream *);
/* What is told to who asks, but for the configuration. */

void jetstream_elect(struct chance *);
/* Another leader, which lacks nothing. It hands out again what nobody has acknowledged, and answers questions before it has done all
 * that the one before had acknowledged: until something is to be changed. */

void jetstream_settle(void);
/* The leaders of buckets have done what was acknowledged, as all do in time: nothing may hang on when a stream's has. */

void jetstream_sync(void);

bool jetstream_crash(struct chance *, const char *prefix);
/* Of the streams whose name begins so. True: some have lost what was put in their stead, or who has them. */

bool jetstream_lost(const char *name);
/* That stream has lost something at the last crash. */

#endif
