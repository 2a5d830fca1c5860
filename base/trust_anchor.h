/* trust_anchor.h - the keys of the root that DNSSEC begins with, read from a file.
 *
 * A file as the package dns-root-data has it: DS or DNSKEY records of the root, one a line, with
 * comments behind a semicolon. Keys of other zones may stand there too.
 *
 * OWNERSHIP  The texts are the caller's, trust_anchor_fini()'s to free.
 * THREAD     Any; no state.
 * ERRORS     False, and why.
 * SEE        RFC 4035 5; RFC 7958.
 */
#ifndef BASE_TRUST_ANCHOR_H
#define BASE_TRUST_ANCHOR_H

#include "base/buf.h"

#include <stdbool.h>

#define TRUST_ANCHOR_FILE "/usr/share/dns/root.key"

enum { TRUST_ANCHORS_MAX = 50 };

struct trust_anchor {
	int n;
	char *record[TRUST_ANCHORS_MAX]; /* each as a line of a zone file */
};

bool trust_anchor_read(struct trust_anchor *, const char *file, struct buf *why);
/* True: at least one record of the root is among them. */

void trust_anchor_fini(struct trust_anchor *);

#endif
