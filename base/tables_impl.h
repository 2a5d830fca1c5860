/* tables_impl.h - what the two files of tables.h share: tables_read.c makes a set, tables.c looks things up in it.
 *
 * OWNERSHIP  As tables.h.
 * THREAD     Once it is made, a set never changes.
 */
#ifndef BASE_TABLES_IMPL_H
#define BASE_TABLES_IMPL_H

#include "base/tables.h"

#include <stdatomic.h>

struct tables {
	atomic_int refs;
	struct role {
		int n;
		struct table **table;
	} of[TABLE_ROLES];
};

#endif
