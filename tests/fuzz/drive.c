/* SPDX-License-Identifier: ISC */
/* drive [-n VARIATIONS] [-s SEED] [-o NUMBER] FOLDER|FILE ... - a target without libFuzzer.
 *
 * Plays each file, in the order of their names; then as many variations of them as are wanted, which
 * follow from the seed and nothing else. When one fails, its input is left in FAILED-TARGET, and
 * -o with its number plays that one alone. */
#include "base/buf.h"
#include "base/mem.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

enum { INPUT_MAX = 1 << 16, INPUTS_MAX = 4096, PIECE_MAX = 64 }; /* bytes; files; bytes */

struct sample {
	char *name;
	struct buf bytes;
};

static struct sample sample[INPUTS_MAX];
static int nsample;
static uint64_t state;
static const char *target;
static long playing;
static const uint8_t *input;
static size_t input_len;

void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

static uint32_t chance(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 16) % below);
}

static void leave_input(void)
{
	char name[256], said[400];
	snprintf(name, sizeof name, "FAILED-%s", target);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	bool left = fd >= 0 && write(fd, input, input_len) == (ssize_t)input_len;
	int n = snprintf(said, sizeof said, "%s: %s %ld fails%s%s\n", target,
			 playing < 0 ? "file" : "variation", playing < 0 ? -playing : playing,
			 left ? ", its input is in " : "", left ? name : "");
	if (write(STDERR_FILENO, said, (size_t)n) < 0)
		_exit(1);
}

static void on_abort(int number)
{
	leave_input();
	signal(number, SIG_DFL);
	raise(number);
}

static void play(const void *bytes, size_t len)
{
	/* Exactly as long as it is, so that the sanitizer sees who reads on. */
	uint8_t *copy = mem_alloc(len ? len : 1);
	if (len > 0)
		memcpy(copy, bytes, len);
	input = copy;
	input_len = len;
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static void read_sample(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0) {
		perror(path);
		exit(2);
	}
	if (S_ISREG(st.st_mode) && nsample < INPUTS_MAX) {
		struct sample *s = &sample[nsample++];
		s->name = mem_strdup(path);
		ssize_t n = read(fd, buf_reserve(&s->bytes, INPUT_MAX), INPUT_MAX);
		buf_commit(&s->bytes, n > 0 ? (size_t)n : 0);
	}
	close(fd);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void read_samples(const char *path)
{
	struct dirent **entry;
	int n = scandir(path, &entry, visible, by_name);
	if (n < 0)
		read_sample(path);
	for (int i = 0; i < n; i++) {
		char *name = mem_printf("%s/%s", path, entry[i]->d_name);
		read_sample(name);
		free(name);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}

/* Put len bytes in the place of cut bytes. */
static void replace(struct buf *b, size_t at, size_t cut, const void *bytes, size_t len)
{
	struct buf to;
	buf_init(&to);
	buf_append(&to, buf_data(b), at);
	buf_append(&to, bytes, len);
	buf_append(&to, buf_data(b) + at + cut, buf_len(b) - at - cut);
	buf_fini(b);
	*b = to;
}

static void part_of(const struct buf *b, size_t *at, size_t *len)
{
	size_t all = buf_len(b);
	*at = all ? chance((uint32_t)all) : 0;
	size_t most = all - *at < PIECE_MAX ? all - *at : PIECE_MAX;
	*len = most ? 1 + chance((uint32_t)most) : 0;
}

static void vary(struct buf *b)
{
	static const uint8_t odd[] = {0, 1, 9, 10, 13, 32, 34, 46, 64, 92, 127, 128, 255};
	uint8_t piece[PIECE_MAX];
	size_t at, cut, from, n = 1;
	part_of(b, &at, &cut);
	uint32_t how = chance(4);
	if (how == 0 && cut > 0) {
		*piece = (uint8_t)((uint8_t)buf_data(b)[at] ^ 1U << chance(8));
		replace(b, at, 1, piece, 1);
	} else if (how == 1) {
		replace(b, at, cut, piece, 0);
	} else if (how == 2) {
		*piece = chance(2) ? odd[chance(sizeof odd)] : (uint8_t)chance(256);
		replace(b, at, cut > 0 ? chance(2) : 0, piece, 1);
	} else {
		struct buf *other = chance(2) ? b : &sample[chance((uint32_t)nsample)].bytes;
		part_of(other, &from, &n);
		if (n > 0)
			memcpy(piece, buf_data(other) + from, n);
		replace(b, at, chance(2) ? cut : 0, piece, n);
	}
}

/* Number n does not depend on those before it. */
static void play_variation(uint64_t seed, long n)
{
	struct buf b;
	state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) ^
		(uint64_t)n * UINT64_C(0xBF58476D1CE4E5B9);
	state = state ? state : 1;
	for (int i = 0; i < 8; i++)
		chance(2);
	const struct buf *from = &sample[chance((uint32_t)nsample)].bytes;
	buf_init(&b);
	buf_append(&b, buf_data(from), buf_len(from));
	for (uint32_t i = 1 + chance(6); i > 0; i--)
		vary(&b);
	if (buf_len(&b) > INPUT_MAX)
		replace(&b, INPUT_MAX, buf_len(&b) - INPUT_MAX, NULL, 0);
	playing = n;
	play(buf_data(&b), buf_len(&b));
	buf_fini(&b);
}

int main(int argc, char **argv)
{
	long variations = 0, only = -1;
	uint64_t seed = 1;
	int option;
	while ((option = getopt(argc, argv, "n:s:o:")) != -1) {
		if (option == 'n')
			variations = atol(optarg);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (option == 'o')
			only = atol(optarg);
		else
			return 2;
	}
	target = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	signal(SIGABRT, on_abort);
	signal(SIGPIPE, SIG_IGN);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(leave_input);
	for (int i = optind; i < argc; i++)
		read_samples(argv[i]);
	if (nsample == 0) {
		fprintf(stderr, "%s: no corpus\n", target);
		return 2;
	}
	for (int i = 0; i < nsample && only < 0; i++) {
		playing = -i - 1;
		play(buf_data(&sample[i].bytes), buf_len(&sample[i].bytes));
	}
	for (long i = only < 0 ? 0 : only; i < (only < 0 ? variations : only + 1); i++)
		play_variation(seed, i);
	printf("%s: %d files, %ld variations\n", target, nsample, variations);
	for (int i = 0; i < nsample; i++) {
		free(sample[i].name);
		buf_fini(&sample[i].bytes);
	}
	return 0;
}
