/* ledger.h - what was promised, what was sent, and what nobody may see.
 *
 * A message has its 250 once ledger_promised() says so. From then on each of its recipients is to be sent to once, or
 * more often where the log had named the message as in doubt in between. What was finished, and had time to be known
 * where it must be, is never sent again.
 *
 * OWNERSHIP  Its own.
 * THREAD     One.
 * ERRORS     ledger_broken(): the sentence that does not hold, kept for who plays the history.
 */
#ifndef TESTS_UNIT_HISTORIES_LEDGER_H
#define TESTS_UNIT_HISTORIES_LEDGER_H

#include "base/content.h"
#include "base/envelope.h"

#include <stdbool.h>
#include <stdint.h>

enum { LEDGER_MESSAGES = 128, LEDGER_RCPT = 2 };

struct sheet {
	uint64_t id;
	uint64_t salt; /* envelope and content follow from it */
	int at;	       /* process that was asked to store it */
	uint64_t with; /* the other one that was stored with it; or 0 */
	bool promised, refused;
	bool deleted; /* by the operator */
	int deleting; /* orders to, of which nobody knows what came */
	bool untold;  /* who has it was lost by the bucket and by its stream: two may send it */
	bool excused; /* more was lost than anybody promises to survive */
	bool apart; /* nobody had a 250 for it when that was lost: it need not be with the other */
	bool finishing;	   /* nothing is left to do, it was said */
	bool firm;	   /* that had time to be known */
	int finisher;	   /* who said so, */
	unsigned life;	   /* in this life, */
	int64_t finish_us; /* and when */
	struct {
		bool sent, doubted;
		int by;
		int64_t sent_us;
	} rcpt[LEDGER_RCPT];
};

/* Which sentence is broken. */
enum broken {
	BROKEN_NONE,
	BROKEN_LOST,	  /* acknowledged mail is lost */
	BROKEN_AGAIN,	  /* what was sent is sent again, and nothing named it as in doubt */
	BROKEN_REVIVED,	  /* what was finished is sent again */
	BROKEN_REFUSED,	  /* what was refused is sent */
	BROKEN_DAMAGED,	  /* something is put aside as damaged, and nothing has harmed a disk */
	BROKEN_CONTENT,	  /* content is another one */
	BROKEN_STRANGER,  /* a message that nobody has brought */
	BROKEN_SHARED_ID, /* one id, two messages */
	BROKEN_HALF,	  /* a message without the one that was stored with it */
	BROKEN_TWICE,	  /* in the queues of two nodes at rest */
	BROKEN_UNFENCED,  /* a node that is up does not come to take mail */
	BROKEN_CLAIM,	  /* a claim that is kept for ever */
	BROKEN_ENDLESS,	  /* a node that does not end in its grace */
	BROKEN_DEAD,	  /* a node that can not start */
	BROKEN_STUCK,	  /* mail that is in a queue and does not leave it */
	BROKEN_BUSY,	  /* a thread goes on and on, and nothing comes of it */
	BROKEN_ASSERT,	  /* the program ended itself */
	BROKEN_SENTENCES
};
const char *broken_text(enum broken);

extern struct ledger {
	struct sheet sheet[LEDGER_MESSAGES];
	int n;
	enum broken broken;
	char detail[240];
} ledger;

void ledger_begin(bool loud); /* loud: say what is promised, sent and finished, on standard error */
void ledger_broken(enum broken, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct sheet *ledger_new(uint64_t id, uint64_t salt, int at); /* NULL: full, or broken */
struct sheet *ledger_find(uint64_t id);			      /* or NULL */
void ledger_promised(uint64_t id);
void ledger_sent(uint64_t id, uint32_t rcpt, int by);
void ledger_doubted(uint64_t id);
void ledger_finishing(uint64_t id, int by);

bool sheet_done(const struct sheet *); /* nothing of it is owed to anybody */
uint32_t sheet_rcpts(const struct sheet *);
bool sheet_large(const struct sheet *);
bool sheet_held(const struct sheet *);
size_t sheet_size(const struct sheet *);
struct envelope *sheet_envelope(const struct sheet *);
char *sheet_bytes(const struct sheet *);

bool ledger_check_content(const struct sheet *, const struct content *);
/* False: it can't be read. */

#endif
