/* list.h - doubly linked lists whose links lie inside the objects.
 *
 * A list head and a link are the same struct. A link that is in no list points at itself, or at nothing
 * while the object around it is all zeros, so that a link that is put into a second list is found out;
 * and list_remove() may be called on it again.
 *
 * OWNERSHIP  The list owns nothing.
 * THREAD     Any; a list belongs to one thread.
 * ERRORS     None; misuse asserts.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define list_entry(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

/* Walk a list; the current object may be removed or freed by the body. */
#define list_each(link, tmp, head)                                                                 \
	for (struct list *link = (head)->next, *tmp = link->next; link != (head);                  \
	     link = tmp, tmp = link->next)

/* The same of the objects themselves: of this type, linked by this member. */
#define list_each_entry(type, entry, member, head)                                                 \
	for (type *entry = NULL, *entry##_at = (void *)(head)->next, *entry##_then = NULL;         \
	     (struct list *)entry##_at != (head) &&                                                \
	     (entry##_then = (void *)((struct list *)entry##_at)->next,                            \
	     entry = list_entry(entry##_at, type, member));                                        \
	     entry##_at = entry##_then)

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline struct list *list_first(const struct list *l)
{
	return list_empty(l) ? NULL : l->next;
}
/* The first link, or NULL when the list is empty. */

static inline void list_insert_before(struct list *where, struct list *link)
{
	assert(!link->next || link->next == link); /* it is in no list yet */
	link->next = where;
	link->prev = where->prev;
	where->prev->next = link;
	where->prev = link;
}

static inline void list_append(struct list *head, struct list *link)
{
	list_insert_before(head, link);
}

static inline void list_prepend(struct list *head, struct list *link)
{
	list_insert_before(head->next, link);
}

static inline void list_remove(struct list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	list_init(link);
}

/* To the end of that list, from whichever it is in, or none. */
static inline void list_move(struct list *head, struct list *link)
{
	list_remove(link);
	list_append(head, link);
}

/* All of the second, in their order, to the end of the first. */
static inline void list_move_all(struct list *head, struct list *from)
{
	assert(head != from);
	while (!list_empty(from))
		list_move(head, from->next);
}

#endif
