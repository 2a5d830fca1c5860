/* conf_value.h - one value of each type: from text, to text, and kept.
 *
 * OWNERSHIP  A text's and a list's strings belong to the place that they are in; conf_value_free()
 *            frees them. A place starts as zero bytes.
 * THREAD     Any.
 * ERRORS     conf_value_set() returns false and says what is wrong with the text, as the second
 *            half of a sentence that begins with the name of the setting.
 */
#ifndef BASE_CONF_VALUE_H
#define BASE_CONF_VALUE_H

#include "base/conf_rows.h"

bool conf_value_set(const struct conf_row *, void *place, const char *text, struct buf *why);
/* For every type but a list. */

bool conf_value_controls(const char *text);
/* Has it a control character? No setting may, nor what stands in a list, nor a title. */

bool conf_value_keep_address(char **address);
/* An address becomes what an envelope keeps of it. False: the text is none, and stays. */

void conf_value_keep_name(char **);
void conf_value_keep_domain(char **address);
/* A name, or the domain of an address, beyond ASCII becomes what hosts and the DNS know; other text stays, but for the final dot of a
 * name, which EHLO, Received and d= have none of. */

void conf_value_default(const struct conf_row *, void *place);
void conf_value_copy(const struct conf_row *, void *to, const void *from);
void conf_value_free(const struct conf_row *, void *place);
void conf_value_print(const struct conf_row *, const void *place, struct buf *to);
void conf_value_print_default(const struct conf_row *, struct buf *to);
/* As it may stand in a file. */

void conf_list_add(struct conf_list *, const char *item);
bool conf_list_has(const struct conf_list *, const char *item);
bool conf_list_same(const struct conf_list *, const struct conf_list *);
void conf_list_free(struct conf_list *);

#endif
