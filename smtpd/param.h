/* param.h - parses the parameters of MAIL and RCPT.
 *
 * The cursor cuts the line in place: "KEY=value KEY value" becomes strings.
 *
 * OWNERSHIP  Keys and values lie in the line.
 * THREAD     The session's. Pure.
 * ERRORS     Sticky: after PARAM_SYNTAX nothing more comes.
 * SEE        RFC 5321 4.1.2 (esmtp-param), 4.1.1.11.
 */
#ifndef SMTPD_PARAM_H
#define SMTPD_PARAM_H

#include <stdbool.h>
#include <stdint.h>

enum param_result { PARAM_NEXT, PARAM_END, PARAM_SYNTAX };

struct param {
	char *at;		 /* what is left */
	const char *key, *value; /* value is NULL when there is no '=' */
	bool begun, failed;
};

void param_init(struct param *, char *rest);
/* rest: what follows the path, with the blank that must part them. */

enum param_result param_next(struct param *);

bool param_is(const struct param *, const char *key);
/* Case does not matter. */

bool param_once(unsigned *seen, unsigned bit);
/* Note that this parameter came; false: it is here a second time. */

bool param_number(const char *value, uint64_t *number);
/* 1 to 20 digits and nothing else, below 2^63. */

bool param_size(const char *value, uint64_t *size);
/* The value of SIZE, which may have 20 digits; beyond what a number holds it is the largest, 2^63 - 1. SEE RFC 1870 3. */

bool param_notify(const char *value, uint8_t *notify);
/* The value of NOTIFY, as bits of enum dsn_notify. SEE RFC 3461 4.1. value may be NULL, which is wrong;
 * likewise below. */

bool param_body(const char *value, uint8_t *body); /* enum body_type; RFC 6152 */
bool param_ret(const char *value, uint8_t *ret);   /* enum dsn_ret; RFC 3461 4.3 */
bool param_by(const char *value, int64_t *seconds, uint8_t *by);
/* Of BY: seconds from now, up to nine digits; bits of enum envelope_by. SEE RFC 2852 4. */

bool param_priority(const char *value, int8_t *priority); /* -9 to 9; RFC 6710 4 */

bool param_hold_for(const char *value, int64_t *seconds); /* 1 to 999999999; RFC 4865 4 */
bool param_hold_until(const char *value,
		      int64_t *date_ms); /* since 1970 by the calendar; likewise */

bool param_envid(const char *value); /* is it one? RFC 3461 4.4 */
bool param_orcpt(const char *value); /* RFC 3461 4.2 */

enum { PARAM_ORCPT_MAX = 500 };

bool param_orcpt_utf8(const char *value, char to[PARAM_ORCPT_MAX + 1]);
/* RFC 6533 3: an address of the type utf-8 may hold characters beyond ASCII. They are written as
 * \x{...}, which any host may be given. False: there are none, or it is none, or too long. */

bool param_orcpt_of(const char *address, char to[PARAM_ORCPT_MAX + 1]);
/* In that form for an address beyond ASCII. False: it is too long. */

bool param_orcpt_octets(const char *value, char to[PARAM_ORCPT_MAX + 1]);
/* Postfix has such an address as rfc822, with the octets of its UTF-8 in xtext. In that form instead, too, likewise. */

#endif
