/* address_set.h - addresses, each once, whatever the case of its letters, and a number for each.
 *
 * OWNERSHIP  The set has copies; address_set_free().
 * THREAD     One at a time.
 * ERRORS     None.
 */
#ifndef BASE_ADDRESS_SET_H
#define BASE_ADDRESS_SET_H

#include <stdbool.h>

struct address_set; /* an empty one is NULL */

bool address_set_add(struct address_set **, const char *address); /* false: it was there */
void address_set_number(struct address_set **, const char *address, int number); /* there or not */
int address_set_number_of(struct address_set *const *, const char *address); /* 0: it has none */
void address_set_free(struct address_set **);

#endif
