/* maildrop_access.h - what sender_access and recipient_access say of a message in the maildrop.
 *
 * As a listener's session hears it (smtpd/access.h), but that one recipient who is refused has the whole message refused, as
 * sendmail does. There is no client and no name of one. Files are looked at; servers are not asked, and rows say nothing to
 * sendmail, which may be allowed to read neither.
 *
 * OWNERSHIP  Embedded; maildrop_access_fini().
 * THREAD     Any.
 * ERRORS     As refusal.
 * SEE        maildrop_form.h, base/access_value.h.
 */
#ifndef CMD_MAILDROP_MAILDROP_ACCESS_H
#define CMD_MAILDROP_MAILDROP_ACCESS_H

#include "base/access_value.h"
#include "base/conf.h"
#include "base/envelope.h"
#include "base/header_addresses.h"

struct maildrop_access {
	struct access_value refusal; /* ACCESS_REFUSE: of the message; else ACCESS_ACCEPT */
	bool discards;		     /* all recipients, by the sender's row */
	struct address_list dropped; /* recipients */
	char *flow;		     /* the first that a row names, or NULL */
};

bool maildrop_access_sender(struct maildrop_access *, const struct conf *, struct envelope *,
			    const char *sender);
bool maildrop_access_recipient(struct maildrop_access *, const struct conf *, struct envelope *,
			       const char *recipient, bool *dropped);
/* False: refused. The envelope is held where a row says so. */

void maildrop_access_fini(struct maildrop_access *);

#endif
