/* world_core.h - what the files of the world share. */
#ifndef TESTS_UNIT_SPOOL_WORLD_CORE_H
#define TESTS_UNIT_SPOOL_WORLD_CORE_H

#include "tests/unit/spool/world.h"

void world_must(const char *wrong, const struct promise *); /* NULL: all is well */
void world_drop_held(struct world *, int i);
void world_post(struct world *, struct note *);
void world_ask(struct world *, int op, uint64_t id);
void world_credit(struct world *, int64_t n);

#endif
