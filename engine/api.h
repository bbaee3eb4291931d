/* api.h: marks of the public interface: visibility, format checking, results that must be looked at. */
#ifndef PC_ENGINE_API_H
#define PC_ENGINE_API_H

#if defined(__GNUC__)
#define PC_API                 __attribute__((visibility("default")))
#define PC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define PC_MUST_USE            __attribute__((warn_unused_result))
#else
#define PC_API
#define PC_PRINTF(text, first)
#define PC_MUST_USE
#endif

#endif
