/* page_files.h - the files of the status page (cmd/http/page/), built into the program.
 *
 * THREAD     Any; they never change.
 */
#ifndef CMD_HTTP_PAGE_FILES_H
#define CMD_HTTP_PAGE_FILES_H

#include <stddef.h>

struct page_file {
	const char *path; /* "/page.js" */
	const char *type;
	const char *begin, *end;
};

const struct page_file *page_file(const char *path); /* or NULL */

#endif
