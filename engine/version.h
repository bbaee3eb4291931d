/* version.h: which pipecast the library is. */
#ifndef PC_ENGINE_VERSION_H
#define PC_ENGINE_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" (semantic versioning): what `pipecast --version` says first, and results files keep. Static storage. */
const char *pc_version(void);

#ifdef __cplusplus
}
#endif
#endif
