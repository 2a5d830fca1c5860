/* conf_faults.h - the faults of a configuration, collected and reported in the order of the lines.
 *
 * OWNERSHIP  Embedded; file names must live as long as it does.
 * THREAD     One.
 */
#ifndef BASE_CONF_FAULTS_H
#define BASE_CONF_FAULTS_H

#include "base/buf.h"

#include <stdbool.h>

struct conf_fault {
	const char *file;
	int line;
	char *text;
	bool whole; /* the file can't be read: the line says nothing */
};

struct conf_faults {
	int n;
	struct conf_fault *fault;
};

void conf_fault(struct conf_faults *, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

enum { CONF_LINE_NONE = -1 }; /* the line of a fault of a file that can't be read */

void conf_faults_name(struct conf_faults *, int from, const char *file, int line);
/* Those from this one on, of files that can't be read, are told of the line that names the file. */

void conf_faults_say(struct conf_faults *, struct buf *to);
/* Each as "FILE:LINE: what is wrong". */

void conf_faults_fini(struct conf_faults *);

#endif
