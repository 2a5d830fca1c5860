/* users.h - the logins of the users' file.
 *
 * No answer may show whether a login exists. So for an unknown login the values have the form of
 * some row of the file, and take as long to check; for SCRAM the salt is always the same, derived
 * from the name by a key in the file.
 *
 * Logins are compared as SASLprep leaves them, and without regard to the case of ASCII letters.
 *
 * THREAD     Any.
 * ERRORS     None; of users_login() a sentence.
 * SEE        user_value.h; RFC 4013 (SASLprep).
 */
#ifndef BASE_USERS_H
#define BASE_USERS_H

#include "base/tables.h"
#include "base/user_value.h"

enum { USERS_LOGIN_MAX = 255, USERS_PASSWORD_MAX = 1000 }; /* bytes */

#define USERS_NOBODY "*" /* whose row holds the key */

bool users_login(const char *text, char login[USERS_LOGIN_MAX + 1], struct buf *why);
/* As it is looked up, and logged. False: no login is written so; why may be NULL. */

bool users_folded(const char *text, char login[USERS_LOGIN_MAX + 1]);
/* The same of a login that somebody else has found to be good, and which may have any character: every spelling
 * of it is one. False: SASLprep does not know it, or it is too long. */

bool users_named(const char *text, char login[USERS_LOGIN_MAX + 1], struct buf *why);
/* The same, and what is wrong: for orders, which may be about anybody who has logged in. */

bool users_in_table(const char *text, char login[USERS_LOGIN_MAX + 1], struct buf *why);
/* As rows name who logs in: as users_login(), but also CORP\ann, whom only a Dovecot can know. */

bool users_listed(const char *logins, const char *login, struct buf *why);
/* Is it one of these, parted by commas and blanks, or is * among them? login NULL: is each of them one?
 * A fault is said in why, which may be NULL. */

bool users_may_send(const struct conf *, const char *login, const char *address);
/* Does sender_logins let the login use that address, which is as an envelope keeps it? */

char *users_password(const char *text, struct buf *why);
/* As it is hashed; the caller frees with mem_free_secret(). NULL: no password is written so. */

bool users_find(const struct tables *, const char *login, struct user_value *);
/* For user_value_check(). False: there is none of that name, and the value is that of another row, so
 * that a check takes the same time; its outcome means nothing. Either way the caller's to
 * user_value_fini(). */

bool users_scram(const struct tables *, const char *login, enum user_hash, struct user_scram *);
/* For an exchange. False: the login has no such keys, or there is none of that name, and these belong
 * to no password. */

#endif
