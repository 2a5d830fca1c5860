/* SPDX-License-Identifier: ISC */
#include "smtpc/secret_file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 10 };

char *secret_file_read(const char *path, struct buf *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char *text = fd >= 0 ? mem_zalloc(FILE_MAX + 1) : NULL;
	ssize_t n = fd >= 0 ? read(fd, text, FILE_MAX + 1) : -1;
	if (n < 0)
		buf_printf(why, "%s: %s", path, strerror(errno));
	else if (n > FILE_MAX)
		buf_printf(why, "%s is larger than 64k", path);
	if (fd >= 0)
		close(fd);
	if (n >= 0 && n <= FILE_MAX) {
		text[n] = '\0';
		return text;
	}
	secret_file_free(text);
	return NULL;
}

void secret_file_free(char *text)
{
	if (text)
		OPENSSL_cleanse(text, FILE_MAX + 1);
	free(text);
}
