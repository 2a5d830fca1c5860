/* alias.h - one address that stands for others.
 *
 * Aliases are expanded on the way in, so that the envelope on disk holds the recipients that are
 * really worked on: no crash can fall between expansion and delivery.
 *
 *	sections of the configuration, then the files in their order: the first that has it
 *
 * THREAD     The session's worker.
 * ERRORS     As a reply, and nothing has been added: a loop, or too many, RESPONSE_ALIAS_LOOP; something that
 *            servers must be asked about first, and is wanted now (alias_heard.h), RESPONSE_LOOKUP_FAILED.
 * SEE        alias_learn.h; RFC 5321 3.9.1; RFC 3461 5.2.7.1 (what the members inherit).
 */
#ifndef SMTPD_ALIAS_H
#define SMTPD_ALIAS_H

#include "base/conf.h"
#include "base/envelope.h"
#include "base/table.h"
#include "smtpd/alias_heard.h"
#include "smtpd/response.h"

enum {
	ALIAS_DEPTH_MAX = 20,
	ALIAS_MEMBERS_MAX = 10000,
	ALIAS_QUESTIONS_MAX = 20000, /* addresses that servers say something of, for one address */
	ALIAS_BYTES_MAX = 4 << 20,   /* of their rows, for one address */
};

/* Which recipients of the envelope an address stands for. */
struct alias_added {
	uint32_t from, to; /* those that are new */
	uint32_t *again;   /* those that were there before */
	uint32_t nagain;
	bool unsaid; /* the asker's: nothing is wanted of reports, and who is there is reported as before */
};

void alias_added_fini(struct alias_added *);

enum response alias_add_recipient(const struct conf *, struct alias_heard *, struct envelope *,
				  const char *address, uint8_t notify, const char *said,
				  const char *orcpt, struct alias_added *);
/* Add a recipient, or those that it stands for, each once: who is there already gets no other copy, and is reported
 * as much as either wish wants, or as before (added->unsaid). said: what the client called it. orcpt may be NULL. added, cleared but for unsaid, is the
 * caller's to fini; or NULL. Without what was heard (NULL), servers count as having nothing. */

enum alias_found { ALIAS_IS_NONE, ALIAS_IS_ONE, ALIAS_UNHEARD };

enum alias_found alias_find(const struct conf *, struct alias_heard *, const char *address,
			    struct conf_list *to, struct table_origin *);
/* The members of an alias, one step; the list's items are the caller's. */

#endif
