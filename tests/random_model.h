/* random_model.h: transformers and ways to cut them, drawn so that pc_cut_check takes them; and passes of whole models.
 */
#ifndef PC_TESTS_RANDOM_MODEL_H
#define PC_TESTS_RANDOM_MODEL_H

#include "models/workload/cut.h"
#include "models/workload/memory.h"
#include "models/workload/model.h"
#include "models/workload/operation.h"
#include "tests/support.h"

__extension__ typedef __int128 wide;

/* GPT as in the papers: h = a * head_dim, f = 4h, learned positions, LayerNorm, GELU, biases, dropout, tied, attention
 * materialised; a vocabulary that needs no padding for up to 8 ranks. */
pc_model random_gpt(test_random *random);

/* Any mixture of what a model may have; heads are a multiple of 8, and key and value heads divide them. */
pc_model random_model(test_random *random);

/* TP of 1 to 8, sequence parallelism or not, a sequence that it divides and the model has positions for; PP and DP of
 * one, nothing recomputed. */
pc_cut random_cut(test_random *random, const pc_model *model);

/* Changes what of a layer the above leave as GPT or Llama have it: any activation, norm and place of norms, norms of
 * queries and keys, biases, windows or chunks, documents and soft caps that pc_cut_check takes with the cut. */
void random_traits(test_random *random, const pc_cut *cut, pc_model *model);

/* Experts, and perhaps latent attention and multi-token prediction, for a drawn model and its cut, which may get
 * sequence parallelism for them. */
void random_experts(test_random *random, pc_model *model, pc_cut *cut);

/* A GPT and its cut, for numbers worked out by hand: h = 32 in 4 heads of 8, f = 128, V = 100, 3 layers; s = 16, b = 3:
 * 48 tokens; two ranks with 2 heads and 16 columns each, and with sequence parallelism, so half the tokens of norms. */
pc_model small_gpt(pc_cut *cut);

/* Llama 3 (Dubey et al. 2024, arXiv 2407.21783, table 3): 8, 70 or 405 billion parameters. */
pc_model llama3(int billions);

/* All layers, with embedding and head. */
pc_part whole_part(const pc_model *model, const pc_cut *cut);

/* Sums over a pass that must be possible. */
pc_operation_sums sums_of(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind, bool has_r);

/* Like assert_int_equal, for 128 bits. */
#define assert_wide_equal(a, b) check_wide((a), (b), #a " == " #b, __FILE__, __LINE__)
void check_wide(wide a, wide b, const char *what, const char *file, int line);

#endif
