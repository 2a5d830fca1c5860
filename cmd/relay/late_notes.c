/* SPDX-License-Identifier: ISC */
#include "cmd/relay/late_notes.h"

#include "base/mem.h"
#include "base/text_note.h"
#include "cluster/cluster.h"

static void put_off(struct cluster_order *o)
{
	if (!o->why)
		o->why = mem_strdup("the relay has ended: here it is carried out when it starts");
}

bool late_notes_take(struct note *note)
{
	switch (note->type) {
	case CLUSTER_APPLY:
		cluster_order_free(&(struct cluster_order *){(struct cluster_order *)note});
		return true;
	case CLUSTER_SAVE:
		text_note_free(&(struct text_note *){(struct text_note *)note});
		return true;
	case CLUSTER_ASKED:
		cluster_asked_free(&(struct cluster_asked *){(struct cluster_asked *)note});
		return true;
	case CLUSTER_ORDER:
		put_off((struct cluster_order *)note);
		return false;
	default:
		return false;
	}
}
