/* marks.h: marks of functions: formats that the compiler checks, results that must be looked at. */
#ifndef PC_ENGINE_MARKS_H
#define PC_ENGINE_MARKS_H

#if defined(__GNUC__)
#define PC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define PC_MUST_USE            __attribute__((warn_unused_result))
#else
#define PC_PRINTF(text, first)
#define PC_MUST_USE
#endif

#endif
