/* saved.h: what a layer keeps of a microbatch for its backward pass, tensor by tensor. Private to workload. */
#ifndef PC_MODELS_WORKLOAD_SAVED_H
#define PC_MODELS_WORKLOAD_SAVED_H

#include "models/workload/model.h"
#include "models/workload/recompute.h"
#include "models/workload/slice.h"

#include <stdbool.h>

/* What a layer is made of, in the order of F. A tensor is of the module that reads it in F, or that drops it. */
typedef enum pc_module {
    PC_MODULE_ATTN_NORM,
    PC_MODULE_QKV,
    PC_MODULE_QK_NORM,
    PC_MODULE_CORE_ATTN,
    PC_MODULE_ATTN_PROJ,
    PC_MODULE_ATTN_POST_NORM,
    PC_MODULE_ATTN_RESIDUAL,
    PC_MODULE_MLP_NORM,
    PC_MODULE_MLP_UP,
    PC_MODULE_MLP_ACT,
    PC_MODULE_MLP_DOWN,
    PC_MODULE_MLP_POST_NORM,
    PC_MODULE_MLP_RESIDUAL,
    PC_MODULES
} pc_module;

/* Who reads a tensor: B, for the input's gradient; W, for the weights'. Both are possible. */
enum { PC_FOR_B = 1, PC_FOR_W = 2 };

typedef struct pc_saved {
    const char *name; /* static storage */
    pc_module module;
    pc_wide bytes;
    int for_whom;
    bool is_gradient; /* of a matrix's output: B has it, and leaves it to W; all others are F's */
    bool is_again;    /* F drops it, and the backward pass makes it again when it comes to the module `made_at` */
    pc_module made_at;
} pc_saved;

enum { PC_SAVED_MAX = 80 };

typedef struct pc_saved_list {
    pc_saved list[PC_SAVED_MAX];
    int count;
} pc_saved_list;

/* Which of a model's layers. `is_low`: of its recipe, which keeps the inputs of matrices in few bits where it says so;
 * else of 16 bits. */
typedef struct pc_saved_sort {
    bool is_low, has_experts;
} pc_saved_sort;

/* One layer of which this set of modules is recomputed (recompute.h), 0: none. Where a recipe keeps a copy in few bits
 * of what attention's backward pass reads in 16, there are both. Vectors, and numbers a row, are left out. */
void pc_layer_saved(const pc_model *model, const pc_slice *slice, pc_saved_sort sort, int32_t modules,
                    pc_saved_list *saved);

/* ---- for who makes lists: saved.c, and saved_experts.c of experts and latent attention ---- */

/* One tensor, unless it is empty; one that is dropped if `is_again`, and made when the backward pass comes to
 * `made_at`; the gradient of a matrix's output. */
void pc_saved_add(pc_saved_list *saved, const char *name, pc_module module, pc_wide bytes, int for_whom);
void pc_saved_add_again(pc_saved_list *saved, const char *name, pc_module module, pc_wide bytes, int for_whom,
                        bool is_again, pc_module made_at);
void pc_saved_add_gradient(pc_saved_list *saved, const char *name, pc_module module, pc_wide bytes);

/* Inputs of matrices and gradients of their outputs, as their product of weights' gradients reads them. */
pc_wide pc_saved_operand(pc_product_format format, pc_wide elements);

/* Behind the norm in front of attention, what goes down to latents and up from them; and the gradients that W reads. */
void pc_saved_add_latents(const pc_slice *slice, pc_product_format format, int32_t modules, pc_saved_list *saved);
void pc_saved_add_latent_gradients(const pc_slice *slice, pc_product_format format, pc_saved_list *saved);

/* The half of a layer that has experts. */
void pc_saved_add_experts(const pc_model *model, const pc_slice *slice, pc_product_format format, int32_t modules,
                          pc_saved_list *saved);
void pc_saved_add_expert_gradients(const pc_model *model, const pc_slice *slice, pc_product_format format,
                                   pc_saved_list *saved);

/* Of layers that are frozen: leaves out what but W reads, and adds what adapters keep. pc_layer_saved has done so.
 * Adapters within experts or latents that are recomputed are made again with them. */
void pc_saved_freeze(const pc_model *model, const pc_slice *slice, bool has_experts, int32_t modules,
                     pc_saved_list *saved);

/* Of them the scores: softmax and, where there is dropout, its mask and what it leaves: 2 or 5 bytes a score; and where
 * they are capped the hyperbolic tangent, 2 more. None with flash attention. */
pc_wide pc_score_bytes(const pc_model *model, const pc_slice *slice);

/* What F keeps of a layer; what is made again beside that; and what W needs, with the gradients that B leaves. */
pc_wide pc_saved_by_f(const pc_saved_list *saved);
pc_wide pc_saved_again(const pc_saved_list *saved);
pc_wide pc_saved_for_w(const pc_saved_list *saved);

/* The most that a backward pass holds of the layer at once, over what F kept of it, 0 or more. It goes module by module
 * from the last one on, makes again what that needs, and is done with it. `leaves_w`: what W needs stays, with the
 * gradients. Other gradients are left out. */
pc_wide pc_saved_peak(const pc_saved_list *saved, bool leaves_w);

#endif
