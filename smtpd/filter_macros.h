/* filter_macros.h - the macros that filters get about a session, with Postfix's names.
 *
 * OWNERSHIP  A value is good until the sixteenth next call (log_text()).
 * THREAD     The session's worker.
 * SEE        POSTFIX MILTER_README, "Macros".
 */
#ifndef SMTPD_FILTER_MACROS_H
#define SMTPD_FILTER_MACROS_H

#include "smtpd/session.h"

struct filter_macros {
	const struct session *session;
	const char *sender, *recipient; /* at work; or NULL */
};

const char *filter_macro(const struct filter_macros *, const char *name); /* NULL: there is none */
#endif
