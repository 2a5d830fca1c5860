/* check_warnings.h - warnings about settings that are allowed, but probably a mistake.
 *
 * THREAD     Main.
 * ERRORS     None: what can't be looked at is not warned of.
 */
#ifndef CMD_LOCAL_CHECK_WARNINGS_H
#define CMD_LOCAL_CHECK_WARNINGS_H

#include "base/conf.h"

int check_warnings(const struct conf *);
/* Each on stderr, as "FILE: warning: what". Returns how many. */

#endif
