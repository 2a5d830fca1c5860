/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/constraint.h"

const char *constraint_name(enum constraint c)
{
	static const char *const name[] = {
#define X(constraint, text) [CONSTRAINT_##constraint] = text,
		CONSTRAINTS(X)
#undef X
	};
	return name[c];
}
