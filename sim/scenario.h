/* scenario.h - a scenario: sections of sluice.conf, arrivals, sites, hosts, rows.
 *
 *	file or text --> [ libconfuse, by base/conf ] --> structs --> [ checks ] --> struct scenario
 *
 * OWNERSHIP  scenario_free() frees all. The configuration in it is changed between runs, by rows.
 * THREAD     main.
 * ERRORS     As "FILE:LINE: what is wrong", all of them, and NULL.
 * SEE        sluice-sim(5); scenario_table.h.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "base/conf.h"
#include "base/resolve.h"
#include "sim/scenario_table.h"
#include "sim/spread.h"

struct scenario_span {
	int64_t from_ms, to_ms;
};

/* Something at a time: the name of a period, a flow, an address. */
struct scenario_named {
	struct scenario_span span; /* without an end: to_ms is 0 */
	char *name;
};

enum { SCENARIO_COLUMNS = 4 }; /* of a picture, at most */

struct scenario_simulation {
	SCENARIO_SIMULATION(CONF_MEMBER)
	int nsuspended, nperiod, ncolumn;
	struct scenario_span *column;
	struct scenario_named *suspended, *period;
};

enum { ARRIVAL_RECIPIENTS_MAX = 10000000 }; /* of one message */

enum scenario_binding { BINDING_LATE, BINDING_EARLY, BINDING_BOTH };
enum scenario_distribution { ARRIVE_CONSTANT, ARRIVE_POISSON, ARRIVE_UNIFORM, ARRIVE_BURSTS };
enum scenario_beyond { BEYOND_421, BEYOND_MUTE, BEYOND_DROP };
enum scenario_filled { FILLED_EVENLY, FILLED_AT_ONCE };
enum scenario_block { BLOCK_554, BLOCK_550, BLOCK_450 };
enum scenario_picture { PICTURE_SITES, PICTURE_FLOWS };
enum scenario_bucket_by { BUCKET_BY_ALL, BUCKET_BY_SOURCE };
enum scenario_outage { OUTAGE_REFUSED, OUTAGE_SILENT, OUTAGE_421 };

struct scenario_arrival {
	char *title;
	int line;
	SCENARIO_ARRIVAL(CONF_MEMBER)
	struct spread recipient_spread, domain_spread, size_spread, flow_spread;
	int nhour, nweekday;
	double *hour, *weekday; /* weights; their mean is 1 */
};

struct scenario_mx {
	uint16_t preference;
	int host;   /* index in the scenario */
	char *name; /* what the site calls it; NULL: as the scenario does */
};

struct scenario_site {
	char *title;
	int line;
	SCENARIO_SITE(CONF_MEMBER)
	int nmx;
	struct scenario_mx *to; /* by preference */
};

struct scenario_limit {
	int64_t from_ms;
	int n;
};

struct scenario_host {
	char *title; /* lower case */
	int line;
	SCENARIO_HOST(CONF_MEMBER)
	double noise_part, refused_part, deferred_part, failed_part, broken_part;
	int nspan;
	struct scenario_span *span; /* outages */
	int nlimit;
	struct scenario_limit *limit; /* by time */
	int nblocked;
	struct scenario_named *blocking; /* by whose address of ours */
	union address address;		 /* made up, unless the title is one; without a port */
};

struct scenario_row {
	char *title;
	int line;
	SCENARIO_ROW(CONF_MEMBER)
};

struct scenario_redis {
	SCENARIO_REDIS(CONF_MEMBER)
	int nspan;
	struct scenario_span *span; /* outages */
};

struct scenario {
	char *file;
	struct conf *conf;
	struct scenario_simulation simulation;
	struct scenario_redis redis;
	int64_t nodes, duration; /* of the simulation, or the row */
	bool one_flow;		 /* of the row */
	int *nuse; /* how many sources each transport and each flow names, where a row has fewer */
	int narrival, nsite, nhost, nrow;
	struct scenario_arrival *arrival;
	struct scenario_site *site;
	struct scenario_host *host;
	struct scenario_row *row;
};

struct scenario *scenario_read(const char *file, struct buf *errors);
struct scenario *scenario_parse(const char *text, const char *file, struct buf *errors);
void scenario_free(struct scenario **);

void scenario_take_row(struct scenario *, const struct scenario_row *);
/* Let the transports and the simulation have the settings of this row. */

const struct scenario_site *scenario_find_site(const struct scenario *, const char *domain);
/* The domain itself, else the longest .parent, else "*", else NULL. */

int scenario_find_host(const struct scenario *, const char *name); /* or address; -1: none */

#endif
