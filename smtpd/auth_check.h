/* auth_check.h - compares a password with the users' file, in a thread of the pool.
 *
 *	auth_check_new() --> fill in --> auth_check_give() --> [ pool ] --> answer to the worker
 *
 * OWNERSHIP  The pool's once it is given, then the answer's, which wait.c frees; all of it is wiped.
 * THREAD     Made and given in the session's worker.
 * ERRORS     A pool that is full, or stops: it is not done.
 */
#ifndef SMTPD_AUTH_CHECK_H
#define SMTPD_AUTH_CHECK_H

#include "base/thread_pool.h"
#include "base/user_value.h"
#include "smtpd/wait.h"

struct auth_check {
	struct wait_answer answer; /* what comes back; first */
	struct thread_pool_job job;
	struct user_value user;
	char *password;
	bool known; /* the row is that login's */
	bool done;  /* the answer: it was held against it, */
	bool right; /* and it is the password */
};

struct auth_check *auth_check_new(struct loop *reply_to);

bool auth_check_give(struct thread_pool *, struct auth_check *);
/* False: there is no room; it is freed. */

#endif
