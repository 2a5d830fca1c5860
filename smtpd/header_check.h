/* header_check.h - may this login be the author that the header names?
 *
 *	From, Sender, each of them --> addresses --> sender_logins: every one is the login's
 *
 * A stage of stages/stages.h, the first: what filters make of the header is the operator's own will. The
 * display names in From are anybody's to choose, and not looked at.
 *
 * THREAD     The session's worker.
 * ERRORS     As the end of the passage: 550 5.7.1, and which address; also where From is not to the letter of
 *            author_list.h, is missing, names nobody, stands there twice, or may be followed by another that some would read and some not.
 * SEE        RFC 6409 6.1, 8.1; RFC 5322 3.6.2; RFC 6854 (groups in From).
 */
#ifndef SMTPD_HEADER_CHECK_H
#define SMTPD_HEADER_CHECK_H

#include "stages/stages.h"

extern const struct passage_stage header_check_stage;

bool header_check_wanted(const struct conf *, const char *login); /* login may be NULL */

#endif
