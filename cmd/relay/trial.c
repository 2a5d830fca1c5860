/* SPDX-License-Identifier: ISC */
#include "cmd/relay/trial.h"

#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAN_NOT_EXECUTE = 127, TEXT_MOST = 4096 };

/* In the new process, which has the memory of the relay until it executes the program. A signal would run the relay's handlers there. */
static void execute_program(const char *program, char **words, int output, unsigned seconds,
			    const sigset_t *mask)
{
	static const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		signal(caught[i], SIG_DFL);
	if (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) {
		alarm(seconds);
		sigprocmask(SIG_SETMASK, mask, NULL);
		execv(program, words);
	}
	const char *why = strerrordesc_np(errno);
	if (why && write(output, why, strlen(why)) < 0)
		_exit(CAN_NOT_EXECUTE);
	_exit(CAN_NOT_EXECUTE);
}

/* Not fork(): all of a large memory would be marked to be copied, and its pages faulted in again. */
static pid_t begin_process(const char *program, char **words, int output, unsigned seconds)
{
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	pid_t pid = vfork();
	if (pid == 0)
		execute_program(program, words, output, seconds, &mask);
	int error = errno;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	errno = error;
	return pid;
}

bool trial_begin(struct trial *t, const char *program, char **words, int seconds)
{
	int way[2];
	signal(SIGCHLD, SIG_DFL); /* whoever started us may have let children go unseen */
	if (pipe2(way, O_CLOEXEC | O_NONBLOCK) != 0)
		return false;
	pid_t pid = begin_process(program, words, way[1], (unsigned)seconds);
	int error = errno;
	close(way[1]);
	if (pid > 0)
		*t = (struct trial){.pid = pid,
				    .output = way[0],
				    .status = CAN_NOT_EXECUTE << 8,
				    .seconds = seconds};
	else
		close(way[0]);
	errno = error;
	return pid > 0;
}

static void read_output(struct trial *t)
{
	char text[TEXT_MOST];
	ssize_t n;
	while ((n = read(t->output, text, sizeof text)) > 0) {
		size_t room = TEXT_MOST - buf_len(&t->text);
		buf_append(&t->text, text, (size_t)n < room ? (size_t)n : room);
	}
}

bool trial_over(struct trial *t)
{
	pid_t ended = waitpid(t->pid, &t->status, WNOHANG);
	read_output(t);
	return ended != 0;
}

static void say_why(const struct trial *t, struct buf *why)
{
	if (WIFSIGNALED(t->status) && WTERMSIG(t->status) == SIGALRM)
		buf_printf(why, "it has not answered within %d s\n", t->seconds);
	else if (WIFSIGNALED(t->status))
		buf_printf(why, "%s\n", strsignal(WTERMSIG(t->status)));
	else if (buf_len(&t->text) == 0)
		buf_printf(why, "it ends with status %d\n", WEXITSTATUS(t->status));
	buf_append(why, buf_data(&t->text), buf_len(&t->text));
	if (buf_len(why) > 0 && buf_cstr(why)[buf_len(why) - 1] != '\n')
		buf_puts(why, "\n");
}

bool trial_passed(struct trial *t, const char *unasked, struct buf *why)
{
	int status = WIFEXITED(t->status) ? WEXITSTATUS(t->status) : STATUS_REFUSED;
	bool passed = status == STATUS_DONE ||
		      (status == STATUS_USAGE && strstr(buf_cstr(&t->text), unasked));
	if (!passed)
		say_why(t, why);
	return passed;
}

void trial_forget(struct trial *t)
{
	if (t->pid)
		close(t->output);
	buf_fini(&t->text);
	*t = (struct trial){0};
}
