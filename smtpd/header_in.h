/* header_in.h - what the header of a message says, read while it passes.
 *
 *	content_in -- decoded runs --> header_in_feed() -- the same bytes --> sink (intake)
 *	                                     |
 *	                                     +-- at its end, where wanted: fields that are missing
 *	                                     +-- where wanted: fields of addresses, rewritten
 *	                                     +-- fields that are to go are left out
 *
 * Looks at one line at a time, of a field at the first that has some of its value: counts Received fields, takes
 * out the field that names the flow, keeps the Message-ID for the log, and notes whether Date, Message-ID and From
 * are there and stay, whether TLS-Required says No, and what Priority and Precedence say. The header ends with
 * the first line that is neither a field nor the rest of one; whatever that line is, it passes unchanged. Fields that are to be
 * rewritten are gathered whole, up to HEADER_FIELD_MAX bytes; longer ones pass unchanged.
 *
 * OWNERSHIP  Embedded; header_in_fini() frees what is held back because its end has not come.
 * THREAD     The session's. Pure: no clock, no I/O.
 * ERRORS     None; a header of any form passes. At most HEADER_HELD_MAX bytes of a
 *            line are held, and HEADER_FIELD_MAX of a field.
 * SEE        RFC 5322 2.2, 3.6; RFC 6409 8; RFC 8689 3; RFC 2156 (Priority).
 */
#ifndef SMTPD_HEADER_IN_H
#define SMTPD_HEADER_IN_H

#include "base/conf.h"
#include "smtpd/header_rewrite.h"

enum {
	HEADER_HELD_MAX = 1024,
	HEADER_FIELD_MAX = 64 << 10,
	HEADER_MESSAGE_ID_MAX = 250,
	HEADER_FLOW_MAX = 64,
	HEADER_BULK_PRIORITY = -4
};

struct header_in {
	void (*sink)(void *owner, const char *bytes, size_t len);
	/* Called once, where fields may be added, if any of the three is missing; blank_line: it
	 * has to write the end of the header too. NULL: nothing is added. */
	void (*missing)(void *owner, bool blank_line);
	header_become *become; /* of each address in fields of addresses; NULL: none is looked at */
	const struct conf_list *drop; /* names of fields that go; or NULL */
	const char *flow_field;	      /* that of one that goes, too, and names the flow; or NULL */
	void *owner;
	struct buf held;   /* the beginning of a line */
	struct buf opened; /* "Name:" of the latest field, while its value has not begun */
	struct buf field;  /* one that is being gathered */
	enum header_class gathers;
	bool over;	    /* past the header */
	bool in_line;	    /* behind a beginning that was looked at: the rest just passes */
	bool in_message_id; /* the latest field */
	bool drops;	    /* the latest field goes, with all its lines */
	bool date, message_id, from;
	bool tls_waived; /* TLS-Required: No */
	bool prioritised; /* by the first field Priority that has a word of it, as a number of RFC 6710 */
	int8_t priority;
	bool bulk; /* Precedence: bulk, list or junk */
	int received;
	/* That of the sender, though it may go; or what missing() adds. */
	char id[HEADER_MESSAGE_ID_MAX + 1];
	bool flow_named;
	/* The first that was there; of one that is too long, one byte more than may be. */
	char flow[HEADER_FLOW_MAX + 2];
};

void header_in_feed(struct header_in *, const char *bytes, size_t len);
void header_in_finish(struct header_in *); /* there is no more */

int8_t header_in_priority(const struct header_in *);
/* As RFC 6710 has them, for mail that was given none: what Priority says, else less than usual for bulk; 0 is usual. */

void header_in_fini(struct header_in *);

#endif
