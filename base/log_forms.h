/* log_forms.h - the lines of Postfix that take the place of our events: one table for who writes them
 * (log_postfix.c) and who reads them (log_line_postfix.c).
 *
 *	{id}: to=<{to}>, relay={relay=none}, ...
 *
 * {KEY} stands for the value of that key, {KEY=TEXT} for TEXT where the event has none. Of several rows
 * of an event and a program the reader takes the first that fits: the longer one comes first.
 *
 * What reads such lines looks for them by these words: pflogsumm for status=, from=, client=,
 * removed, hold:, discard:; fail2ban for NOQUEUE: reject.
 *
 * THREAD     Any.
 * ERRORS     None.
 * SEE        sluice(8), "LOG"; pflogsumm(1).
 */
#ifndef BASE_LOG_FORMS_H
#define BASE_LOG_FORMS_H

enum log_form_name {
	LOG_FORM_CONNECT,
	LOG_FORM_DISCONNECT,
	LOG_FORM_REJECT_TO, /* of a recipient */
	LOG_FORM_REJECT,
	LOG_FORM_DISCARD_TO, /* of a recipient */
	LOG_FORM_DISCARD,    /* of a message, by a filter */
	LOG_FORM_EMPTY,	 /* of a message all of whose recipients had gone: no discard of its own */
	LOG_FORM_ERRORS, /* the second line of a reject */
	LOG_FORM_AUTH,	 /* a login that failed */
	LOG_FORM_REPORT, /* the first line of a queued message: where it came from */
	LOG_FORM_PICKUP,
	LOG_FORM_LOGIN,
	LOG_FORM_CLIENT,
	LOG_FORM_HELD,	     /* behind it, where the message goes on hold */
	LOG_FORM_MESSAGE_ID, /* its second line */
	LOG_FORM_QUEUED,     /* its third */
	LOG_FORM_SENT,
	LOG_FORM_DEFERRED,
	LOG_FORM_BOUNCED,
	LOG_FORM_IN_DOUBT, /* read as deferred, which is what Postfix would have called it */
	LOG_FORM_DONE,
	LOG_FORMS
};

/* Why a message is thrown away that nobody is left to get: who dropped its recipients has said so of each. */
#define LOG_NO_RECIPIENT "no recipient is left"

struct log_form {
	const char *event, *program, *text;
	const char *key, *value; /* what the line means without saying it, or NULL */
};

extern const struct log_form log_forms[LOG_FORMS];

#endif
