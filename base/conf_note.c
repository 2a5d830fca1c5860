/* SPDX-License-Identifier: ISC */
#include "base/conf_note.h"

#include <stdlib.h>

struct conf_note {
	struct note note;
	struct conf *conf;
};

void conf_note_post(struct loop *to, int type, struct conf *conf)
{
	struct conf_note *n = mailbox_note(sizeof *n, type);
	n->conf = conf_ref(conf);
	loop_post(to, &n->note);
}

struct conf *conf_note_take(struct note *note)
{
	struct conf *conf = ((struct conf_note *)note)->conf;
	free(note);
	return conf;
}

void conf_note_use(struct note *note, struct conf **conf)
{
	conf_unref(*conf);
	*conf = conf_note_take(note);
}
