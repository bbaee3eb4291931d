/* list_keys.h: `pipecast list keys`: the keys of scenario files, as text or as docs/scenario-reference.md. */
#ifndef PC_CLI_LIST_KEYS_H
#define PC_CLI_LIST_KEYS_H

/* `format` is "table" or "markdown"; returns the exit status. */
int list_keys(const char *format);

#endif
