/* author.h - who signs a message: the keys of the domain in From, if the client may use it; and our own.
 *
 *	From, each of them --> addresses --> one domain --> its sections, or its rows --> may the client?
 *	dkim_also --> its sections, or its rows
 *
 * THREAD     The passage's.
 * ERRORS     A sentence: there are keys for a domain in From, and all the same they do not sign.
 * SEE        RFC 5322 3.6.2; RFC 6376 5.1 (who should sign), 6.1.3; keyring.h.
 */
#ifndef DKIM_AUTHOR_H
#define DKIM_AUTHOR_H

#include "base/dkim_rows.h"
#include "stages/stages.h"

/* Those that sign one message. */
struct signers {
	int n;
	struct signer {
		const struct conf_dkim
			*by; /* a section, in conf; or of the keyring, when it is read */
		char *domain, *selector, *file; /* of a row; else NULL */
	} of[CONF_DKIM_MAX];
};

void author_signers(const struct passage *, struct signers *, struct buf *why);
/* The draft is open. why is empty where no domain in From is ours. */

bool signers_load(struct signers *, struct buf *why);
/* Read the keys that are not read yet. In a thread that may wait for the disk. */

void signers_fini(struct signers *);

#endif
