/* query.h - the bytes of a question.
 *
 * THREAD     Any; no state.
 * ERRORS     A name that can't be asked for: NULL.
 * SEE        RFC 1035 4.1; RFC 6891 (EDNS).
 */
#ifndef DNS_QUERY_H
#define DNS_QUERY_H

#include "dns/answer.h"

#include <stddef.h>
#include <stdint.h>

/* A reply of this size crosses every network in one piece. */
enum { QUERY_EDNS_BYTES = 1232 };

enum query_edns {
	QUERY_PLAIN,   /* no EDNS: for servers that choke on it */
	QUERY_EDNS,    /* replies up to QUERY_EDNS_BYTES */
	QUERY_EDNS_DO, /* the same, with signatures, and whether they were good (RFC 6840 5.7) */
	QUERY_EDNS_CD, /* without, and whatever they say (RFC 4035 3.2.2) */
};

uint8_t *query_build(const char *name, unsigned type, enum query_edns, uint16_t id, size_t *size);
/* A malloc'd packet, recursion desired; its OPT record, if any, lies at its end. */

#endif
