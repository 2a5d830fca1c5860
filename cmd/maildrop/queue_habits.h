/* queue_habits.h - translates the queue options of sendmail and Postfix into ours.
 *
 *	-q		flush --all			-qItext		the message of this id
 *	-qRtext		a recipient holds text		-qStext		the sender holds text
 *
 * OWNERSHIP  queue_habit_free() frees the words.
 * THREAD     Any.
 * ERRORS     False: it is none of these.
 * SEE        POSTFIX sendmail(1), postqueue(1); mailq(1) of sendmail.
 */
#ifndef CMD_MAILDROP_QUEUE_HABITS_H
#define CMD_MAILDROP_QUEUE_HABITS_H

#include <stdbool.h>

struct queue_habit {
	char *word[2]; /* of a filter, or an id; NULL: none */
};

bool queue_habit_read(struct queue_habit *, const char *value);
/* value: what stands behind -q. */

void queue_habit_free(struct queue_habit *);

int queue_habit_flush(const struct queue_habit *, const char *conf_file); /* the exit status */
int queue_habit_list(const struct queue_habit *, const char *conf_file);

#endif
