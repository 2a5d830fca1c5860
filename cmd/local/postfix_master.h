/* postfix_master.h - what of a master.cf of Postfix is to be written by hand.
 *
 *	submission inet n - y - - smtpd		a listener
 *	  -o smtpd_tls_security_level=encrypt	an option of the line above
 *	slow unix - - y - 5 smtp		a transport
 *
 * What every installation has, as it has it, is not told of.
 *
 * THREAD     Any.
 * ERRORS     None: a file that is not there has nothing.
 * SEE        POSTFIX master(5).
 */
#ifndef CMD_LOCAL_POSTFIX_MASTER_H
#define CMD_LOCAL_POSTFIX_MASTER_H

void postfix_master_read(const char *file, void (*tell)(void *context, int line, const char *text),
			 void *context);

#endif
