/* tlsrpt_text.h - the counts as text, kept over restarts.
 *
 *	report 20779 a.test 0			day since 1970, domain; the number is always 0
 *	sent https://a.test/tls			who has it, a line each
 *	policy sts 12 1				policy, successes, failures
 *	text version: STSv1			the policy, a line for each of its own
 *	detail certificate-expired 1 mx.a.test 192.0.2.1 192.0.2.9 its certificate ...
 *						type, count, host, its address, ours, reason; "-": not known
 *
 * THREAD     tlsrpt, or whoever has the tally while that does not run.
 * ERRORS     A line that is none of these is passed over.
 */
#ifndef TLSRPT_TLSRPT_TEXT_H
#define TLSRPT_TLSRPT_TEXT_H

#include "tlsrpt/tlsrpt_tally.h"

void tlsrpt_text_write(const struct tlsrpt_tally *, struct buf *to);
void tlsrpt_text_read(struct tlsrpt_tally *, const char *text);

#endif
