/* alias.h - one address that stands for others.
 *
 * Aliases are expanded on the way in, so that the envelope on disk holds the recipients that are
 * really worked on: no crash can fall between expansion and delivery.
 *
 *	sections of the configuration, then the files in their order: the first that has it
 *
 * THREAD     The session's worker.
 * ERRORS     A loop, or more than ALIAS_MEMBERS_MAX members: false, and nothing has been added.
 * SEE        RFC 5321 3.9.1; RFC 3461 5.2.7.1 (what the members inherit).
 */
#ifndef SMTPD_ALIAS_H
#define SMTPD_ALIAS_H

#include "base/conf.h"
#include "base/envelope.h"
#include "base/table.h"

enum { ALIAS_DEPTH_MAX = 20, ALIAS_MEMBERS_MAX = 10000 };

bool alias_add_recipient(const struct conf *, struct envelope *, const char *address,
			 uint8_t notify, const char *said, const char *orcpt);
/* Add a recipient, or those that it stands for, each once. said: what the client called it. orcpt may
 * be NULL. */

bool alias_find(const struct conf *, const char *address, struct conf_list *to,
		struct table_origin *);
/* What it stands for, one step; the list's items are the caller's. False: it is none. */

#endif
