/* SPDX-License-Identifier: ISC */
#include "spool/op.h"

#include "base/mem.h"
#include "spool/payload.h"

#include <assert.h>
#include <stdlib.h>

struct op *op_of(struct list *link)
{
	return list_entry(link, struct op, link);
}

struct op *op_add(struct spool *s, enum op_kind kind, struct stub *stub)
{
	assert(kind == OP_STORE || stub);
	struct op *op = mem_zalloc(sizeof *op);
	op->kind = kind;
	op->stub = stub;
	list_append(&s->todo, &op->link);
	return op;
}

void op_finish(struct spool *s, struct stub *stub)
{
	assert(!stub->moving);
	struct op *op = op_add(s, OP_FINISH, stub);
	op->worked = stub->state == STUB_ACTIVE;
	stub_enter(s, stub, STUB_GONE);
	catalog_remove(&s->catalog, stub);
}

/* Not one that was in effect before: the work that is under way holds its place. */
static bool is_new_delivery(const struct op *op, const struct stub *stub)
{
	return op->kind == OP_DELIVERED && op->stub == stub && !op->effective;
}

void op_finish_delivered(struct spool *s, struct stub *stub, bool delivers)
{
	struct op *last = list_empty(&s->todo) ? NULL : op_of(s->todo.prev);
	if (last && is_new_delivery(last, stub)) {
		delivers = true;
		list_remove(&last->link);
		delivered_free(last->delivered);
		op_free(last);
	}
	op_finish(s, stub);
	op_of(s->todo.prev)->delivers = delivers;
}

void op_give_back(struct spool *s, struct stub *stub)
{
	assert(stub->state == STUB_ADOPTED);
	op_finish(s, stub);
	struct op *op = op_of(s->todo.prev);
	assert(op->kind == OP_FINISH && op->stub == stub);
	op->given_back = true;
	given_back_add(&s->given_back, stub->id, stub->generation);
}

void op_free(struct op *op)
{
	assert(list_empty(&op->link));
	envelope_free(&op->envelope);
	content_unref(op->content);
	free(op);
}
