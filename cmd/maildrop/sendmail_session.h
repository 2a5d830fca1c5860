/* sendmail_session.h - sendmail -bs: SMTP on standard input and output, with the relay at the other end.
 *
 * A program at a pipe may say all at once, which the relay would refuse as an attempt to smuggle: so
 * each command goes to it when the one before is answered. Lines may end with LF or CRLF. There is no
 * TLS on a pipe.
 *
 * THREAD     Main; it blocks until one side has ended.
 * ERRORS     421 on standard output where the relay can't be reached, or breaks off, and EX_TEMPFAIL.
 * SEE        RFC 5321; RFC 3030 (BDAT); POSTFIX sendmail(1), -bs.
 */
#ifndef CMD_MAILDROP_SENDMAIL_SESSION_H
#define CMD_MAILDROP_SENDMAIL_SESSION_H

#include "base/conf.h"

int sendmail_session(const struct conf *); /* an exit status of sysexits.h */

#endif
