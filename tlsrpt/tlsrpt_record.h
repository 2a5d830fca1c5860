/* tlsrpt_record.h - the TXT record of _smtp._tls.DOMAIN: where reports should go.
 *
 *	v=TLSRPTv1; rua=mailto:tls@a.test,https://a.test/tls
 *
 * OWNERSHIP  The texts are the caller's to free().
 * THREAD     Any. Pure.
 * ERRORS     0: nobody.
 * SEE        RFC 8460 3.
 */
#ifndef TLSRPT_TLSRPT_RECORD_H
#define TLSRPT_TLSRPT_RECORD_H

#include <stdbool.h>

struct tlsrpt_target {
	bool https;
	char *to;	   /* a URL, or a mail address */
	struct post *post; /* under way, by HTTPS; or NULL */
};

bool tlsrpt_record_is(const char *txt); /* is it one of this kind? */

int tlsrpt_record_parse(const char *txt, struct tlsrpt_target *to, int most);
/* Recipients that can be used, in the order of the record; repeated ones once. */

#endif
