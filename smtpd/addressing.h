/* addressing.h - what happens to the addresses of an envelope on the way in.
 *
 *	sender     --> rewriting -----------------------------------------------> envelope
 *	recipient  --> rewriting --+--> alias --> each member ------------------> envelope
 *	                           +--> recipient_bcc --> alias ----------------> envelope
 *	at the end --> always_bcc, sender_bcc --> alias ------------------------> envelope
 *
 * Bcc sees an address rewritten. Before all that, recipient_access sees it as the client gave it:
 * access.h. A copy is reported to nobody (NOTIFY=NEVER), and copies have no copies.
 *
 * OWNERSHIP  The envelope stays the caller's.
 * THREAD     The session's worker, or the maildrop's.
 * ERRORS     As a reply. RESPONSE_LOOKUP_FAILED: servers of aliases must be asked first, what is wanted of them is
 *            known, and nothing has been added. Without what was heard (NULL) they count as having nothing.
 * SEE        alias.h, alias_learn.h, rewrite.h, base/access_value.h.
 */
#ifndef SMTPD_ADDRESSING_H
#define SMTPD_ADDRESSING_H

#include "base/access_value.h"
#include "base/conf.h"
#include "base/envelope.h"
#include "base/table.h"
#include "smtpd/alias.h"
#include "smtpd/response.h"

enum response addressing_sender(const struct conf *, const char *address, char **rewritten);
/* RESPONSE_OK, and *rewritten is the caller's to free. */

bool addressing_access(const struct conf *, const char *recipient, struct access_value *,
		       struct table_origin *);
/* The answer of the files of recipient_access, the caller's to fini. False: there is none. */

enum response addressing_recipient(const struct conf *, struct alias_heard *, struct envelope *,
				   const char *address, uint8_t notify, const char *orcpt,
				   struct alias_added *);
/* Add a recipient, or those it stands for, and who gets a copy of what it gets; orcpt may be NULL. added, as of alias.h, is
 * cleared, and the caller's to fini; or NULL. A copy that was there already is not among them. */

enum response addressing_copies(const struct conf *, struct alias_heard *, struct envelope *);
/* All recipients have come: add those who get a copy of what this sender sends, and of everything. */

bool addressing_recipient_known(const struct conf *, struct alias_heard *, const char *address);
bool addressing_copies_known(const struct conf *, struct alias_heard *, const char *sender);
/* No server must be asked before those are called; else all that is wanted is. */

#endif
