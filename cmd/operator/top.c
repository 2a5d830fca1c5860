/* SPDX-License-Identifier: ISC */
/* sluice top: what the relay counts, live, with how fast it grows. */
#include "base/clock.h"
#include "base/conf_units.h"
#include "base/mem.h"
#include "base/words.h"
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/operator/top_screen.h"
#include "cmd/text/stats_print.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: sluice top [-c FILE] [-d TIME] [-n COUNT]\n"
	"Show on one screen how much mail comes in and goes out, the queues, what takes time, and\n"
	"the ten worst destinations, again and again. Keys: w, a, d, r, n sort by worst, waiting, "
	"deferred,\n"
	"rate, name; up and down choose a destination, Enter shows it; p pauses, q ends.\n"
	"If the output is not a terminal: the counters of sluice stats, with the change a second.\n"
	"  -d, --delay TIME   between two screens: 1s by default, at least 100ms; a bare number "
	"is\n"
	"                     seconds\n"
	"  -n, --count COUNT  end after so many screens; by default at an interrupt\n";

static const struct option longs[] = {
	{"delay", required_argument, NULL, 'd'},
	{"count", required_argument, NULL, 'n'},
	OPTIONS_COMMON,
};

/* --- where it is no terminal: counters, with the change a second of what only grows */

static bool is_total(const char *name, size_t len)
{
	size_t plain = strcspn(name, "{ ");
	plain = plain < len ? plain : len;
	return plain > 6 && strncmp(name + plain - 6, "_total", 6) == 0;
}

static void print_line(const struct top_look *now, const struct top_look *before, const char *line)
{
	size_t len = strlen(line), name = len;
	if (strncmp(line, STATS_CONDITION, strlen(STATS_CONDITION)) == 0) {
		puts(line);
		return;
	}
	while (name > 0 && line[name - 1] != ' ')
		name--;
	if (name == 0)
		return;
	name--;
	printf("%-44.*s %14.*s", (int)name, line, (int)(len - name - 1), line + name + 1);
	if (before->at_us > 0 && is_total(line, name)) {
		char *full = mem_strndup(line, name);
		double old = top_look_value(before, full), value = top_look_value(now, full);
		printf(" %12.1f/s", (value - old) / ((double)(now->at_us - before->at_us) / 1e6));
		free(full);
	}
	putchar('\n');
}

/* A histogram's buckets are left out: stats --all has them. */
static void print_counters(const struct top_look *now, const struct top_look *before)
{
	const char *text = buf_cstr((struct buf *)&now->stats);
	for (char *line; (line = words_line(&text)); free(line))
		if (!strstr(line, "_bucket{"))
			print_line(now, before, line);
	putchar('\n');
	fflush(stdout);
}

/* --- a terminal */

static struct termios usual;
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

/* Keys come one by one, unseen; the screen is another one, so that the usual comes back whole. */
static void begin_screen(void)
{
	struct termios raw;
	struct sigaction act = {.sa_handler = on_signal};
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	tcgetattr(STDIN_FILENO, &usual);
	raw = usual;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout);
}

static void end_screen(void)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &usual);
}

static void measure_screen(struct top_screen *s)
{
	struct winsize size;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
	s->rows = known ? size.ws_row : 24;
	s->columns = known && size.ws_col > 0 ? size.ws_col : 80;
}

/* Each line, and nothing behind it; the last one without an end, which would scroll. */
static void show_text(const struct buf *text)
{
	const char *line = buf_cstr((struct buf *)text);
	fputs("\033[H", stdout);
	while (*line) {
		size_t len = strcspn(line, "\n");
		printf("%.*s\033[K", (int)len, line);
		line += len + (line[len] == '\n');
		if (*line)
			fputs("\r\n", stdout);
	}
	fputs("\033[J", stdout);
	fflush(stdout);
}

enum key { KEY_NONE, KEY_UP = 1000, KEY_DOWN, KEY_ENTER };

/* The key that was pressed within the time; arrows send three bytes. */
static int read_key(int64_t wait_ms)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	char bytes[8];
	if (interrupted || poll(&fd, 1, (int)wait_ms) <= 0)
		return KEY_NONE;
	ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
	if (n <= 0)
		return 'q';
	if (n >= 3 && bytes[0] == '\033')
		return bytes[2] == 'A' ? KEY_UP : bytes[2] == 'B' ? KEY_DOWN : KEY_NONE;
	return bytes[0] == '\r' || bytes[0] == '\n' ? KEY_ENTER : bytes[0];
}

struct top {
	const struct conf *conf;
	struct top_look now, before;
	struct top_screen screen;
};

static int look_again(struct top *t)
{
	struct top_look spare = t->before;
	t->before = t->now;
	t->now = spare;
	int status = top_look_take(&t->now, t->conf, &t->before);
	if (status == STATUS_DONE)
		top_screen_sort(&t->screen, &t->now);
	return status;
}

static void draw_screen(struct top *t)
{
	struct buf text = {0};
	measure_screen(&t->screen);
	int n = top_screen_sites(&t->screen, &t->now);
	if (t->screen.chosen >= n)
		t->screen.chosen = n > 0 ? n - 1 : 0;
	top_screen_print(&t->screen, &t->now, &t->before, clock_wall_ms(), &text);
	show_text(&text);
	buf_fini(&text);
}

/* All that is known of the chosen one, until a key is pressed. */
static void see_one(struct top *t)
{
	char dest[] = "dest", verb[] = "show";
	struct buf text = {0}, page = {0};
	if (t->now.nsite == 0)
		return;
	assert(t->screen.chosen >= 0 && t->screen.chosen < t->now.nsite);
	char *words[] = {dest, verb, t->now.site[t->screen.chosen].name, NULL};
	if (client_ask_into(t->conf->spool, 3, words, &text) == STATUS_DONE) {
		top_screen_page(&t->screen, buf_cstr(&text), &page);
		show_text(&page);
		while (!interrupted && read_key(1000) == KEY_NONE)
			;
	}
	buf_fini(&text);
	buf_fini(&page);
}

/* False: it is enough. */
static bool obey_key(struct top *t, int key)
{
	static const char orders[TOP_ORDERS] = {'w', 'a', 'd', 'r', 'n'};
	for (int i = 0; i < TOP_ORDERS; i++)
		if (key == orders[i])
			t->screen.order = (enum top_order)i;
	if (key == 'p' || key == ' ')
		t->screen.paused = !t->screen.paused;
	if ((key == KEY_UP || key == 'k') && t->screen.chosen > 0)
		t->screen.chosen--;
	if (key == KEY_DOWN || key == 'j')
		t->screen.chosen++;
	if (key == KEY_ENTER)
		see_one(t);
	top_screen_sort(&t->screen, &t->now);
	return key != 'q' && !interrupted;
}

static int watch_screen(struct top *t, int64_t delay_ms, int64_t count)
{
	int status = look_again(t);
	bool more = status == STATUS_DONE;
	if (!more)
		return status;
	begin_screen();
	for (int64_t n = 1, next_ms = clock_steady_ms() + delay_ms; more;) {
		draw_screen(t);
		int64_t left_ms = next_ms - clock_steady_ms();
		int key = read_key(left_ms > 0 ? left_ms : 0);
		more = obey_key(t, key);
		if (!more || clock_steady_ms() < next_ms)
			continue;
		next_ms = clock_steady_ms() + delay_ms;
		more = count == 0 || n++ < count;
		if (more && !t->screen.paused)
			status = look_again(t);
		more = more && status == STATUS_DONE;
	}
	end_screen();
	if (status != STATUS_DONE) /* what was said of it is gone with the screen */
		fputs("sluice: the relay can no longer be reached\n", stderr);
	return status;
}

static int watch_lines(struct top *t, int64_t delay_ms, int64_t count)
{
	int status = STATUS_DONE;
	for (int64_t n = 0; status == STATUS_DONE && (count == 0 || n < count); n++) {
		if (n > 0)
			nanosleep(&(struct timespec){delay_ms / 1000, delay_ms % 1000 * 1000000},
				  NULL);
		status = look_again(t);
		if (status == STATUS_DONE)
			print_counters(&t->now, &t->before);
	}
	return status;
}

static int watch_relay(const struct conf *conf, int64_t delay_ms, int64_t count)
{
	struct top t = {.conf = conf};
	top_look_init(&t.now);
	top_look_init(&t.before);
	bool terminal = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
	int status = (terminal ? watch_screen : watch_lines)(&t, delay_ms, count);
	top_look_fini(&t.now);
	top_look_fini(&t.before);
	return status;
}

/* A bare number is seconds, as in other programs of that name. */
static int64_t parse_delay(const struct options *o, const char *text)
{
	int64_t ms = 0;
	struct buf why = {0};
	bool bare = *text && strspn(text, "0123456789") == strlen(text);
	char *time = mem_printf("%s%s", text, bare ? "s" : "");
	if (!conf_amount_parse(CONF_duration, time, &ms, &why) || ms < 100)
		options_wrong(o, "--delay %s: not a time of at least 100ms", text);
	free(time);
	buf_fini(&why);
	return ms;
}

int cmd_top(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:d:n:", .longs = longs};
	int64_t delay_ms = 1000, count = 0;
	for (int option; (option = options_next(&o, argc, argv)) != -1;) {
		if (option == 'd')
			delay_ms = parse_delay(&o, optarg);
		else
			count = options_number(&o, "--count", optarg, 1, INT32_MAX);
	}
	if (optind < argc)
		options_wrong(&o, "top takes no argument %s", argv[optind]);
	struct conf *conf = options_conf_to_ask(&o);
	if (!conf)
		return STATUS_REFUSED;
	int status = watch_relay(conf, delay_ms, count);
	conf_unref(conf);
	return status;
}
