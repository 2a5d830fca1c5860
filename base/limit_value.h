/* limit_value.h - what a row of the tables `limits` says: how much this login may send.
 *
 *	500/h 2000/h		messages, recipients
 *	50000/d			of recipients as many as the section limit "login" says
 *	50000/d 0/d		of recipients as many as it likes
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_LIMIT_VALUE_H
#define BASE_LIMIT_VALUE_H

#include "base/conf.h"

struct limit_value {
	struct conf_rate messages, recipients; /* no events: no limit */
	bool of_recipients;		       /* the row says something of them */
};

const char *limit_value_parse(const char *, struct limit_value *, struct buf *why);
/* NULL: good. Else where it is not, and why. */

#endif
