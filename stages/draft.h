/* draft.h - a message whose content has come, and which may be changed until it is in the queue.
 *
 *	header:	fields in memory, to be looked at, inserted and removed
 *	body:	what came, in memory or in a file; or another in its place
 *	draft_settle(): one content again
 *
 * The header is split at draft_open(), not before. It ends with an empty line, or where a line is
 * neither a field nor the rest of one; such a line stays where it is, as the first of the body, and the
 * header is called broken.
 *
 * OWNERSHIP  Embedded; owns the envelope and the content, until draft_give().
 * THREAD     One at a time.
 * ERRORS     draft_open(), draft_body() and draft_settle() fail with errno when the disk does;
 *            draft_open() with EMSGSIZE when the header is longer than DRAFT_HEADER_MAX. A draft that
 *            could not be settled is good for draft_fini() only.
 * SEE        RFC 5322 2.1, 2.2.
 */
#ifndef STAGES_DRAFT_H
#define STAGES_DRAFT_H

#include "base/envelope.h"
#include "base/header_addresses.h"
#include "spool/content_writer.h"

enum { DRAFT_HEADER_MAX = 1 << 20 };

struct draft_field {
	const char *
		text; /* from its name to the CRLF of its last line; of the last field, that may be missing */
	size_t len;
	char *own; /* the same, if it was inserted */
};

struct draft {
	struct spool *spool;
	uint64_t id;
	struct envelope *envelope; /* to be changed as one likes; the addresses as in envelope.h */
	struct content *content;   /* in memory; or NULL, when */
	struct spool_file *file;   /* it is here */
	struct spool_store *with;  /* to be stored beside it; or NULL */
	uint64_t size;		   /* of that, in bytes */
	bool opened, changed, complete;
	bool broken;	  /* its header ends without an empty line, and there is more */
	char *header;	  /* what the fields of content in a file point to */
	size_t charged;	  /* of that, to the budget of sessions */
	uint64_t body_at; /* where the body begins, the empty line in front of it left out */
	bool empty_line;  /* which is there */
	int nfield, cap;
	struct draft_field *field;
	struct content_writer *body; /* another body; NULL: the one that came */
};

void draft_init(struct draft *, struct spool *, uint64_t id);
/* The envelope, and content or file with their size, are the maker's to set. */

void draft_fini(struct draft *);

bool draft_open(struct draft *); /* from now on there are fields; again: nothing */

void draft_insert(struct draft *, int at, char *text);
/* A field that becomes the at-th, from 0, at most nfield. Takes text, malloc'd: the whole field, its
 * lines ended by CRLF. */

void draft_remove(struct draft *, int at);

struct draft_field *draft_replace_fields(struct draft *, int n);
/* Room for so many in place of those there are, to be filled at once with these, others and fewer of them. What the
 * caller has removed he has freed. */

bool draft_field_is(const struct draft_field *, const char *name); /* in any case of letters */

bool draft_addresses(const struct draft_field *, struct address_list *, struct buf *why);
/* Those that are in it, as header_addresses(). */

ssize_t draft_content(const struct draft *, uint64_t offset, void *to, size_t len);
/* All of it, as content_read(): as it came, or has been settled. */

uint64_t draft_body_size(const struct draft *);
ssize_t draft_body(const struct draft *, uint64_t offset, void *to, size_t len);
/* The body that came, as content_read(). */

const char *draft_body_bytes(const struct draft *, size_t *len);
/* The same, where it lies in memory; or NULL. */

void draft_body_begin(struct draft *);
/* Another body comes: put it with draft_body_put(). What came can still be read. Again: the new one
 * begins anew. */

void draft_body_put(struct draft *, const char *bytes, size_t len);

void draft_body_drop(struct draft *); /* the one that was begun is not to be, after all */
void draft_complete(struct draft *);
/* A message that lacks it gets an end of its last line, and an empty line behind the header, unless that is broken. */

bool draft_settle(struct draft *);
/* The changes are made, and the draft is as before draft_open(). A large message is copied: by the pool,
 * not in a loop; see draft_settles_slowly(). */

bool draft_settles_slowly(const struct draft *);

void draft_give(struct draft *, struct spool_store *);
/* Envelope and content, which are settled, and what is to be stored beside it go to what the spool is
 * asked. */

#endif
