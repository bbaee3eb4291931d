/* The one state of the process: HDF5's, which the library did not choose. */
#include "api/handles.h"

#include <pthread.h>

static pthread_mutex_t mutex;

static void make_mutex(void) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE); /* a callback may call the library */
    pthread_mutex_init(&mutex, &how);
    pthread_mutexattr_destroy(&how);
}

void api_lock(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_mutex);
    pthread_mutex_lock(&mutex);
}

void api_unlock(void) {
    pthread_mutex_unlock(&mutex);
}
