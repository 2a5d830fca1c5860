/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "replica/nats_setup.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FROZEN_US = 60 * 1000000, ALARMS = 4 };

static sem_t ended;

/* Of the library's thread, which ends some looks after the frost. */
static void on_alarm(int signal)
{
	static int alarms;
	(void)signal;
	if (alarms++ == 0)
		clock_stand(clock_steady_us() + FROZEN_US);
	if (alarms == ALARMS)
		sem_post(&ended);
	alarm(1);
}

static void wait_through_frost(void)
{
	sem_init(&ended, 0, 0);
	signal(SIGALRM, on_alarm);
	alarm(1);
	nats_setup_await_end(&ended);
	_exit(0);
}

/* As by SIGSTOP, or by who freezes a container: the library's thread had no more of that time than we. */
static void a_process_that_was_frozen_waits_on(void **state)
{
	int status = -1;
	(void)state;
	pid_t child = fork();
	if (child == 0)
		wait_through_frost();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_was_frozen_waits_on),
	};
	return RUN(tests);
}
