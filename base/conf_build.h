/* conf_build.h - from texts to a struct conf, completed but not yet checked as a whole.
 *
 * OWNERSHIP  File names are the reader's.
 * THREAD     main.
 * ERRORS     As faults; the conf that comes back is whole all the same, for conf_free().
 */
#ifndef BASE_CONF_BUILD_H
#define BASE_CONF_BUILD_H

#include "base/conf_faults.h"
#include "base/conf_file.h"
#include "base/conf_lines.h"

struct conf *conf_build(const struct conf_file *, const char *file, struct conf_lines *,
			struct conf_faults *);
void conf_free(struct conf *);

void conf_build_section(const struct conf_block *, const struct conf_section *, void *section,
			const char *file, struct conf_lines *, struct conf_faults *);
/* One section of another grammar: defaults, and what the block gives. The struct is zero before,
 * and its values are the caller's to conf_value_free(). */

struct conf_file *conf_provider_files(const struct conf *, const struct conf_lines *,
				      struct conf_faults *);
/* The files of providers that it names, in an array for the caller to free, each of them to conf_file_fini(). */

void conf_provider_check(struct conf *, const struct conf_lines *, struct conf_faults *);
/* Fills in the transport of each, and the table of suffixes. */

void conf_provider_free(struct conf *);

void conf_source_check(struct conf *, const struct conf_lines *, struct conf_faults *);
/* Fills in the addresses of each, and who uses it. */

void conf_source_free(struct conf *);

void conf_aliases(struct conf *, const struct conf_lines *, struct conf_faults *);
/* Check the aliases of sections, and sort them. */

void conf_check(struct conf *, const struct conf_lines *, struct conf_faults *);
/* Everything that takes more than one value to see, or more than a range. Fills in what is
 * derived: the transport of each route, queue.jitter. */

void conf_milter_check(struct conf *, const struct conf_lines *, struct conf_faults *);
/* Fills in where each filter is, and which a listener's mail passes. */

void conf_nats_check(const struct conf *, const struct conf_lines *, struct conf_faults *);
/* Settings of the cluster section about NATS. */

void conf_cluster_check(const struct conf *, const struct conf_lines *, struct conf_faults *);

void conf_dkim_check(struct conf *, const struct conf_lines *, struct conf_faults *);

void conf_dkim_load(struct conf *, const struct conf_lines *, struct conf_faults *);
/* The keys that sign; only who may read them can. */

void conf_check_keys(struct conf *, const struct conf_lines *, struct conf_faults *);
/* Can the certificates and keys that it names be used? Only who may read them can tell. Fills in
 * auth.users, where somebody may log in by that file. */

#endif
