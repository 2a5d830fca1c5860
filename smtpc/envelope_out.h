/* envelope_out.h - the lines MAIL and RCPT of a delivery, and what cannot be expressed in them.
 *
 * OWNERSHIP  Nothing is kept.
 * THREAD     Any; no I/O but reading the content.
 * ERRORS     envelope_out_refusal() is asked first; what it lets pass can be written.
 * SEE        RFC 5321 4.1.1.2, 4.1.1.3; RFC 1870; RFC 3461 4; RFC 6152; RFC 6531.
 */
#ifndef SMTPC_ENVELOPE_OUT_H
#define SMTPC_ENVELOPE_OUT_H

#include "base/delivery.h"
#include "smtpc/capability.h"

struct verdict *envelope_out_refusal(const struct delivery *, const struct capability *,
				     const char *host);
/* Why this host will not be asked at all: content above its SIZE or in a form it does not take, a sender or
 * header that needs SMTPUTF8, or an address that would not stay inside its command. NULL: go on. Otherwise a reference.
 * Of what a better host may do (delivery.second) the mail is put off. */

struct verdict *envelope_out_rcpt_refusal(const struct delivery *, uint32_t i,
					  const struct capability *, const char *host);
/* Likewise why it will not be asked about this recipient: an address that needs SMTPUTF8. The others need not. */

bool envelope_out_converts(const struct delivery *, const struct capability *);
/* Is its content to be made fit for this host, and can it be? */

void envelope_out_mail(struct buf *to, const struct delivery *, const struct capability *,
		       bool converted);
void envelope_out_rcpt(struct buf *to, const struct delivery *, uint32_t i,
		       const struct capability *);

#endif
