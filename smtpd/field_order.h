/* field_order.h - the fields of a header while many of them change: by place, and by number among those of a name.
 *
 *	fields --> all of them: a tree by place         each step costs the depth of a tree, whatever
 *	       \-> those of one name: a tree each       the header's length
 *
 * A tree holds no keys: where an element stands is counted by the sizes of what lies before it. It begins balanced, and
 * stays so by chance: which of two trees is put under the other is drawn by their sizes.
 *
 * OWNERSHIP  The fields are copied; what they point to is the caller's.
 * THREAD     One at a time.
 * ERRORS     None.
 */
#ifndef SMTPD_FIELD_ORDER_H
#define SMTPD_FIELD_ORDER_H

#include "stages/draft.h"

struct field_order;

struct field_order *field_order_new(const struct draft_field *, int n, int unnamed, int more);
/* unnamed: one that no name finds, or -1. So many more may be inserted. */

void field_order_free(struct field_order **);

int field_order_len(const struct field_order *);

int field_order_find(const struct field_order *, const char *name, uint32_t index);
/* The place of the index-th of that name, from 1; -1: there is none. */

int field_order_unnamed(const struct field_order *); /* its place, or -1 */

struct draft_field field_order_remove(struct field_order *, int place);
void field_order_insert(struct field_order *, int place, const struct draft_field *);

void field_order_put(const struct field_order *,
		     struct draft_field *to); /* all of them, in their order */

#endif
