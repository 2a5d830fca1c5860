/* reason_text.h - what a reply speaks of, by its words.
 *
 *	code, enhanced code, text --> lower case, without addresses --> the first group with a phrase in it
 *
 * A phrase begins where a word does, may end within one, and may have a gap of some words ("user*unknown").
 * The groups are in an order: who names a list of spammers speaks of spam too, and one that is full may say
 * that it denies. Some hold only for some commands: an address that is refused at MAIL is the sender's.
 *
 * Words that anything may be said with ("denied", "policy") are weak: an enhanced code knows better.
 *
 * OWNERSHIP  Constant.
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef BASE_REASON_TEXT_H
#define BASE_REASON_TEXT_H

#include "base/reason.h"

struct reason_said {
	enum reason reason;
	enum reason_whose whose;
	bool weak;
};

bool reason_text_find(const struct verdict *, struct reason_said *);
/* False: nothing that is known. */

#endif
