/* check_sources.h - warnings of sluice check: sources whose address this machine lacks, and such that nothing uses.
 *
 * THREAD     The command's.
 * ERRORS     None.
 */
#ifndef CMD_LOCAL_CHECK_SOURCES_H
#define CMD_LOCAL_CHECK_SOURCES_H

#include "base/conf.h"

void check_sources(const struct conf *, void (*warn)(void *context, int line, const char *text),
		   void *context);
/* line: of the section. */

#endif
