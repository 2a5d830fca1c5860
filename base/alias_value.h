/* alias_value.h - the addresses that an alias stands for: "address, address".
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_ALIAS_VALUE_H
#define BASE_ALIAS_VALUE_H

#include "base/conf.h"

const char *alias_value_parse(const char *, const char *key, struct conf_list *to, struct buf *why);
/* Add them to the list, which may be NULL. NULL: good. Else where it is not, and why. */

#endif
