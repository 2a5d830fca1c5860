/* table_forms.h - what the rows of a table must look like, by what the table is for.
 *
 * OWNERSHIP  Constant.
 * THREAD     Any. Pure.
 * ERRORS     The check of a form says what is wrong, and where; its context is the configuration.
 * SEE        table.h; sluice.conf(5).
 */
#ifndef BASE_TABLE_FORMS_H
#define BASE_TABLE_FORMS_H

#include "base/tables.h"

const struct table_form *table_form_of(enum table_role);

#endif
