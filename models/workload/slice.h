/* slice.h: what one rank of tensor parallelism has of a model, for one microbatch. Private to workload. */
#ifndef PC_MODELS_WORKLOAD_SLICE_H
#define PC_MODELS_WORKLOAD_SLICE_H

#include "models/workload/attention.h"
#include "models/workload/cut.h"
#include "models/workload/model.h"

#include <stdbool.h>
#include <stdint.h>

/* Sums and products of sizes: for a checked cut none of them reaches 2^127, though it may be over 2^63. */
__extension__ typedef __int128 pc_wide;

/* What a rank has of a layer's experts. Rows are pairs of a token and an expert of its. */
typedef struct pc_expert_slice {
    int64_t experts; /* of this rank: E / ep */
    int64_t topk;
    int64_t ranks;             /* ep */
    int64_t cut;               /* etp */
    int64_t tokens;            /* that this rank routes, as many as its norms have */
    int64_t rows;              /* of its products: of the fullest rank, with those that fill up a capacity */
    int64_t held_rows;         /* and for which there is memory: of the cut's memory_quantile */
    int64_t counted;           /* rows that model FLOPs count: none is dropped, and every rank has as many */
    int64_t sent;              /* rows that its own tokens make, but for dropped ones */
    int64_t ffn, up;           /* columns of one expert, as the slice's own */
    int64_t shared, shared_up; /* of the shared experts, which tensor parallelism cuts */
    int64_t adapter_rank;      /* of the adapters beside routed ones */
} pc_expert_slice;

typedef struct pc_slice {
    int64_t sequence;     /* s; of a slice of the sequence, its tokens */
    int64_t keys;         /* as many as let a causal mask hide half of sequence * keys: s; of a slice that begins behind
                           * u tokens 2u + its own, for its queries see those u, and half of the others */
    int64_t keys_before;  /* u * b, tokens whose keys and values are there from earlier slices; 0 of whole sequences */
    bool has_later;       /* whether slices follow, whose passes read this one's keys and values */
    int64_t context;      /* ranks of context parallelism, cp; of them */
    int64_t exchange;     /* those that exchange heads, */
    int64_t ring;         /* and those round whom keys and values go; or */
    bool gathers_keys;    /* keys and values are gathered over all */
    int64_t ranks;        /* t */
    int64_t tokens;       /* s * b / cp, or a slice's s * b */
    int64_t loss_tokens;  /* of them, those whose logits are there at once: all, or a piece of them, rounded up */
    int64_t norm_tokens;  /* of them, those whose norms, dropout and residuals are this rank's: all, or their t-th */
    int64_t hidden;       /* h */
    int64_t head_dim;     /* of queries and keys */
    int64_t value_dim;    /* and of values */
    int64_t attention;    /* (query head, sequence) pairs: b * a / t */
    pc_sight full, local; /* what queries see in layers without and with a window */
    int64_t query;        /* columns of the queries, a / t heads */
    int64_t key;          /* columns of the keys, and of the values: at least one head */
    int64_t value;        /* columns of the values: as many as of the keys but for latent attention */
    int64_t output;       /* rows of the output matrix: a / t heads of values */
    int64_t qkv;          /* query + key + value */
    int64_t ffn;          /* f / t */
    int64_t up;           /* columns of the matrix before the activation: f / t, or twice that (gate and up) */
    int64_t vocab;        /* padded V / t; with vocabulary parallelism a stage's slice of that */
    pc_wide counted_qkv;  /* a t-th of the whole model's query, key and value matrix: less than h * qkv where key and
                           * value heads are fewer than ranks and stand on several */
    pc_expert_slice experts; /* zeros without */
    pc_mla mla;              /* the model's */
    int64_t latent_up;       /* columns of the matrix that makes keys and values of their latents */
    bool is_cut;             /* t > 1: there are collectives */
    bool is_sequence_cut;    /* and sequence parallelism */
    bool keeps_gathered;     /* of these, inputs of matrices with cut columns are kept for all tokens */
    bool has_norms_apart;    /* a norm is a module of its own, and not one with the matrix behind it */
    bool stores_low_input;   /* the cut's */
    bool attention_is_low, attention_hands_low, fuses_operations, compiles; /* likewise */
    pc_lora lora;                                                           /* the cut's */
    int32_t frozen;                                                         /* pc_cut_frozen */
    int32_t graphs;                                                         /* the cut's */
} pc_slice;

/* For a checked cut, of whole sequences. */
pc_slice pc_slice_of(const pc_model *model, const pc_cut *cut);

/* The same of the slice of the sequence that the part's passes work at. */
pc_slice pc_slice_of_part(const pc_model *model, const pc_cut *cut, const pc_part *part);

#endif
