/* ident.h - message ids.
 *
 * A 64-bit number: microseconds of wall time in the upper 52 bits (until the year 2112), 2 bits
 * that tell apart what came in the same microsecond (more of it borrows from the next), and 10 bits that
 * say which node made it: the number that a node of a cluster has alone, 0 where there is one machine. So
 * no two nodes ever make the same id, and a message keeps its own when another node takes it. As text, 13 characters of 0-9 A-Z without I L
 * O U: sorting the text sorts by time; safe in a shell, a file name and a log.
 *
 * THREAD     Any; ident_new() never returns the same id twice in a process, and never one that is
 *            not above ident_floor().
 */
#ifndef BASE_IDENT_H
#define BASE_IDENT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	IDENT_TEXT = 14,       /* 13 characters and a NUL */
	IDENT_NODES = 1024,    /* numbers of nodes, from 0 */
	IDENT_TIME_SHIFT = 12, /* an id without these bits is a microsecond */
};

uint64_t ident_new(void);
void ident_set_node(unsigned number); /* less than IDENT_NODES; ids from now on are this node's */
void ident_floor(uint64_t id);	      /* ids from now on are above this one */
const char *ident_text(uint64_t id, char text[IDENT_TEXT]);
bool ident_parse(const char *text, uint64_t *id); /* false: no id; lower case is accepted */
int64_t ident_time_ms(uint64_t id);

#endif
