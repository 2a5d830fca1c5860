/* hint.h - is it worth asking another thread about this name?
 *
 *	owner:	hint_add(HINT_X, name) ... hint_drop(HINT_X, name)	once each, as long as it knows the name
 *	others:	hint_maybe(HINT_X, name)	false: it knows nothing of it, or has just come to know
 *
 * So the many names that nobody knows anything of cost no question: what is known lies with its thread,
 * and is told by its mailbox alone. Names are counted at places in a table of fixed size that a keyed
 * hash chooses. Where two share a place, a question is asked for nothing.
 *
 * OWNERSHIP  Static.
 * THREAD     hint_maybe(): any. The others: those who know, for each of their names.
 * ERRORS     None; a name that is dropped without having been added asserts.
 */
#ifndef BASE_HINT_H
#define BASE_HINT_H

#include <stdbool.h>

enum hint {
	HINT_DEAD_DOMAIN, /* dns: the answer for its mail hosts is that there are none, for good */
	HINT_SUPPRESSED,  /* qmgr: a recipient that a host does not know */
	HINTS
};

void hint_add(enum hint, const char *name);
void hint_drop(enum hint, const char *name);
bool hint_maybe(enum hint, const char *name);

#endif
