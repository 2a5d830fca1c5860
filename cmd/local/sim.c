/* SPDX-License-Identifier: ISC */
/* sluice sim: the scheduler under a virtual clock. */
#include "sim/learn.h"
#include "sim/sim.h"
#include "sim/sweep.h"
#include "sim/sweep_buckets.h"

#include "cmd/cmd.h"
#include "cmd/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
	"usage: sluice sim SCENARIO | --random [--seed N] [--row TITLE] [--json] [--plot "
	"FILE.svg]\n"
	"       sluice sim --learn LOG\n"
	"       sluice sim --sweep N | --buckets N [--seed N] [--json | --show]\n"
	"Run the scheduler under a virtual clock, with the arrivals, hosts and failures of a\n"
	"scenario, and tell what became of the mail. See sluice-sim(5).\n"
	"  --seed N         of all chance, instead of the scenario's\n"
	"  --random         a small scenario made from the seed, as the tests use them\n"
	"  --sweep N        N random destinations, with this seed and those that follow it: mean\n"
	"                   delays, as Postfix would have them, and at best\n"
	"  --buckets N      N random hosts that let so much through in a time, beside who knows\n"
	"                   how much\n"
	"  --show           print the scenario that --random, --sweep or --buckets makes, and do\n"
	"                   not run it\n"
	"  --learn LOG      print a scenario of what is in a log of the relay, in the form text\n"
	"                   or json: its hosts, failures, limits and arrivals\n"
	"  --row TITLE      run only this row of the scenario\n"
	"  --json           windows, connections and queue over time, an object a line\n"
	"  --plot FILE.svg  the same as a picture; of one row\n"
	"Exit status: 0; 1 when the scheduler broke one of its rules, which is told; 2 when\n"
	"there is something wrong with the scenario.\n";

enum { SEED = OPTION_OWN, RANDOM, SHOW, LEARN, SWEEP, BUCKETS, ROW, PLOT };

static const struct option longs[] = {
	{"seed", required_argument, NULL, SEED},   {"random", no_argument, NULL, RANDOM},
	{"show", no_argument, NULL, SHOW},	   {"learn", required_argument, NULL, LEARN},
	{"sweep", required_argument, NULL, SWEEP}, {"buckets", required_argument, NULL, BUCKETS},
	{"row", required_argument, NULL, ROW},	   {"json", no_argument, NULL, OPTION_JSON},
	{"plot", required_argument, NULL, PLOT},   OPTIONS_COMMON,
};

enum { SWEEP_MOST = 1000000 };

struct wanted {
	const char *file, *row, *plot, *learn;
	int64_t seed;		/* 0: not given */
	int64_t sweep, buckets; /* likewise */
	bool random, show, json;
};

static void take_option(struct options *o, struct wanted *w, int option)
{
	switch (option) {
	case SEED:
		w->seed = options_number(o, "--seed", optarg, 1, INT64_MAX);
		break;
	case RANDOM:
		w->random = true;
		break;
	case SHOW:
		w->show = true;
		break;
	case LEARN:
		w->learn = optarg;
		break;
	case SWEEP:
		w->sweep = options_number(o, "--sweep", optarg, 1, SWEEP_MOST);
		break;
	case BUCKETS:
		w->buckets = options_number(o, "--buckets", optarg, 1, SWEEP_MOST);
		break;
	case ROW:
		w->row = optarg;
		break;
	case PLOT:
		w->plot = optarg;
		break;
	default:
		w->json = true;
	}
}

static void check_options(struct options *o, const struct wanted *w)
{
	bool sweeps = w->sweep || w->buckets;
	if ((sweeps && (w->random || w->row || w->plot)) || (w->sweep && w->buckets))
		options_wrong(o, "--sweep and --buckets have destinations of their own");
	if (w->learn && (w->random || sweeps || w->row || w->plot || w->json || w->seed))
		options_wrong(o, "--learn goes alone: what it prints is what is run");
	if (w->show && !w->random && !sweeps)
		options_wrong(o, "--show is for --random, --sweep and --buckets");
}

static void parse_options(struct options *o, struct wanted *w, int argc, char **argv)
{
	int option;
	while ((option = options_next(o, argc, argv)) != -1)
		take_option(o, w, option);
	bool none = w->random || w->learn || w->sweep || w->buckets;
	if (none ? optind < argc : optind + 1 != argc)
		options_wrong(
			o, "sim takes a scenario, or else --random, --sweep, --buckets or --learn");
	check_options(o, w);
	w->file = none ? "random" : argv[optind];
	if (none && w->seed == 0)
		w->seed = 1;
}

static struct scenario *scenario_of(const struct wanted *w, struct buf *errors)
{
	struct buf text = {0};
	if (!w->random)
		return scenario_read(w->file, errors);
	sim_random((uint64_t)w->seed, &text);
	struct scenario *s = scenario_parse(buf_cstr(&text), w->file, errors);
	buf_fini(&text);
	return s;
}

static bool write_plot(const char *file, const struct sim *sim)
{
	struct buf svg = {0};
	sim_plot(sim, &svg);
	FILE *out = fopen(file, "we");
	bool good = out && fwrite(buf_data(&svg), 1, buf_len(&svg), out) == buf_len(&svg);
	if (out && fclose(out) != 0)
		good = false;
	if (!good)
		fprintf(stderr, "sluice: %s: %s\n", file, strerror(errno));
	buf_fini(&svg);
	return good;
}

static int tell_outcome(const struct wanted *w, struct sim *sim)
{
	struct buf text = {0};
	if (w->json)
		sim_json(sim, &text);
	else
		sim_report(sim, &text);
	bool good = fwrite(buf_data(&text), 1, buf_len(&text), stdout) == buf_len(&text) &&
		    fflush(stdout) == 0;
	buf_fini(&text);
	if (w->plot && !write_plot(w->plot, sim))
		good = false;
	for (int i = 0; w->json && i < sim->n; i++)
		fputs(buf_cstr(&sim->run[i].tally->faults), stderr);
	if (sim_faults(sim) == 0)
		return good ? STATUS_DONE : STATUS_REFUSED;
	fprintf(stderr,
		"sluice: the scheduler broke a rule; again with: sluice sim %s --seed %llu\n",
		w->random ? "--random" : w->file, (unsigned long long)sim->seed);
	return STATUS_REFUSED;
}

static const struct scenario_row *row_named(const struct scenario *s, const char *title)
{
	for (int i = 0; i < s->nrow; i++)
		if (strcmp(s->row[i].title, title) == 0)
			return &s->row[i];
	return NULL;
}

static int run_scenario(const struct options *o, const struct wanted *w, struct scenario *s,
			struct buf *errors)
{
	if (w->row && !row_named(s, w->row))
		options_wrong(o, "there is no row %s in %s", w->row, s->file);
	if (w->plot && s->nrow > 1 && !w->row)
		options_wrong(o, "--plot is of one row: choose it with --row");
	uint64_t seed = (uint64_t)(w->seed ? w->seed : s->simulation.seed);
	struct sim *sim = sim_run(s, seed, w->row, errors);
	int status = sim ? tell_outcome(w, sim) : STATUS_USAGE;
	sim_free(&sim);
	return status;
}

static int show_scenario(const struct wanted *w)
{
	struct buf text = {0}, what = {0};
	if (w->sweep)
		sweep_write((uint64_t)w->seed, &text, &what);
	else if (w->buckets)
		sweep_buckets_write((uint64_t)w->seed, true, &text, &what);
	else
		sim_random((uint64_t)w->seed, &text);
	if (w->sweep || w->buckets)
		printf("# %s\n", buf_cstr(&what));
	fputs(buf_cstr(&text), stdout);
	buf_fini(&what);
	buf_fini(&text);
	return STATUS_DONE;
}

static int run_sweep(const struct wanted *w)
{
	struct sweep of;
	struct buf text = {0};
	sweep_run(&of, (int)w->sweep, (uint64_t)w->seed);
	if (w->json)
		sweep_json(&of, &text);
	else
		sweep_report(&of, &text);
	fputs(buf_cstr(&text), stdout);
	bool good = fflush(stdout) == 0 && sweep_faults(&of) == 0;
	buf_fini(&text);
	sweep_fini(&of);
	return good ? STATUS_DONE : STATUS_REFUSED;
}

static int run_buckets(const struct wanted *w)
{
	struct sweep_buckets of;
	struct buf text = {0};
	sweep_buckets_run(&of, (int)w->buckets, (uint64_t)w->seed, true);
	if (w->json)
		sweep_buckets_json(&of, &text);
	else
		sweep_buckets_report(&of, &text);
	fputs(buf_cstr(&text), stdout);
	bool good = fflush(stdout) == 0 && sweep_buckets_faults(&of) == 0;
	buf_fini(&text);
	sweep_buckets_fini(&of);
	return good ? STATUS_DONE : STATUS_REFUSED;
}

static int print_learnt(const struct wanted *w)
{
	struct buf text = {0}, errors = {0};
	bool good = learn_scenario(w->learn, &text, &errors);
	fputs(good ? buf_cstr(&text) : "", stdout);
	fputs(buf_cstr(&errors), stderr);
	buf_fini(&text);
	buf_fini(&errors);
	return good && fflush(stdout) == 0 ? STATUS_DONE : STATUS_USAGE;
}

int cmd_sim(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	struct wanted w = {0};
	struct buf errors = {0};
	parse_options(&o, &w, argc, argv);
	if (w.learn)
		return print_learnt(&w);
	if (w.show)
		return show_scenario(&w);
	if (w.sweep)
		return run_sweep(&w);
	if (w.buckets)
		return run_buckets(&w);
	struct scenario *s = scenario_of(&w, &errors);
	int status = s ? run_scenario(&o, &w, s, &errors) : STATUS_USAGE;
	fputs(buf_cstr(&errors), stderr);
	scenario_free(&s);
	buf_fini(&errors);
	return status;
}
