/* SPDX-License-Identifier: ISC */
#include "replica/nats_files.h"

#include "base/file_io.h"

static struct stat look_at_file(const char *path)
{
	struct stat is;
	return *path && stat(path, &is) == 0 ? is : (struct stat){.st_size = 0};
}

void nats_files_note(struct nats_files *f, const struct conf_cluster *c)
{
	const char *const path[NATS_FILES] = {c->nats_ca, c->nats_certificate, c->nats_key};
	*f = (struct nats_files){.is = {{.st_size = 0}}};
	for (int i = 0; c->nats_tls && i < NATS_FILES; i++)
		f->is[i] = look_at_file(path[i]);
}

bool nats_files_changed(const struct nats_files *f, const struct conf_cluster *c)
{
	struct nats_files now;
	bool same = true;
	nats_files_note(&now, c);
	for (int i = 0; i < NATS_FILES; i++)
		same &= file_is_same(&f->is[i], &now.is[i]);
	return !same;
}
