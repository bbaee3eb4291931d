/* plan_models.h: several models, of which the largest is wanted that keeps to a deadline or a budget. */
#ifndef PC_CLI_PLAN_MODELS_H
#define PC_CLI_PLAN_MODELS_H

#include "cli/plan_request.h"

enum { PLAN_MODELS_MOST = 32 };

typedef struct plan_models {
    char name[PLAN_MODELS_MOST][512];
    double parameters[PLAN_MODELS_MOST];
    int count;
} plan_models;

/* The request's models, the largest first. An exit status, all having been said, if one cannot be loaded, there are too
 * many, or nothing says what to keep to; else -1. */
int plan_models_list(plan_request *request, plan_models *models);

#endif
