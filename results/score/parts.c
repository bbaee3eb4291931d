/* What rows come to, as tables of fields: for JSON and HDF5. */
#include "results/score/score_private.h"

#define TEXT(row, member, words)                                                                                       \
    { #member, "", words, PC_FIELD_TEXT, PC_FIELD_AT(row, member), .is_optional = true }
#define WHOLE(row, member, words)                                                                                      \
    { #member, "1", words, PC_FIELD_INT64, PC_FIELD_AT(row, member), .is_optional = true }
#define REAL(row, member, words)                                                                                       \
    { #member, "1", words, PC_FIELD_NUMBER, PC_FIELD_AT(row, member) }

static const pc_field sum_fields[] = {
    TEXT(pc_score_sum, by, "columns by which rows are summed up; empty: all rows"),
    TEXT(pc_score_sum, value, "what these have"),
    WHOLE(pc_score_sum, rows, "rows"),
    WHOLE(pc_score_sum, asked, "rows that could be asked"),
    WHOLE(pc_score_sum, ok, "rows that fit"),
    WHOLE(pc_score_sum, out_of_memory, "rows called out of memory, though they were measured"),
    WHOLE(pc_score_sum, infeasible, "rows called infeasible, though they were measured"),
    WHOLE(pc_score_sum, compared, "rows with a measured time and a forecast"),
    REAL(pc_score_sum, mean, "mean of the sizes of their errors"),
    REAL(pc_score_sum, median, "median of these"),
    REAL(pc_score_sum, worst, "the largest error, with its sign"),
    REAL(pc_score_sum, bias, "mean of the errors"),
    WHOLE(pc_score_sum, worst_line, "line of the file with the largest error"),
    WHOLE(pc_score_sum, memory_compared, "rows with measured memory and a forecast"),
    REAL(pc_score_sum, memory_mean, "mean of the sizes of the errors of memory"),
    REAL(pc_score_sum, memory_bias, "mean of these errors"),
};

static const pc_field missing_fields[] = {
    TEXT(pc_score_missing, feature, "feature or fact that is missing"),
    WHOLE(pc_score_missing, rows, "rows that it is missing of"),
    WHOLE(pc_score_missing, alone, "of these, rows of which nothing else is missing"),
};

static const pc_field pair_fields[] = {
    TEXT(pc_score_pair, thing, "the one thing in which runs differ"),
    WHOLE(pc_score_pair, pairs, "pairs"),
    WHOLE(pc_score_pair, told, "pairs whose measured times differ by more than 2%"),
    WHOLE(pc_score_pair, right, "of these, pairs that the forecast orders likewise"),
    REAL(pc_score_pair, mean, "mean of the sizes of errors of the ratio of times"),
    REAL(pc_score_pair, worst, "the largest of these errors, with its sign"),
    WHOLE(pc_score_pair, worst_first_line, "lines of the file with that pair: the first"),
    WHOLE(pc_score_pair, worst_second_line, "and the second"),
};

static const pc_field group_fields[] = {
    TEXT(pc_score_group, model, "model of the configurations"),
    TEXT(pc_score_group, machine, "machine"),
    TEXT(pc_score_group, precision, "precision"),
    WHOLE(pc_score_group, gpus, "GPUs"),
    WHOLE(pc_score_group, global_batch, "sequences of an iteration"),
    WHOLE(pc_score_group, seq_len, "tokens in a sequence"),
    WHOLE(pc_score_group, configurations, "configurations"),
    REAL(pc_score_group, rank_correlation, "Spearman's, of measured and forecast times"),
    REAL(pc_score_group, regret,
         "measured time of the one that is forecast to be the fastest over the least, less one"),
    WHOLE(pc_score_group, best_line, "line of the file with the fastest"),
    WHOLE(pc_score_group, chosen_line, "line with the one that is forecast to be the fastest"),
};

#define PART(name, fields, row)                                                                                        \
    { name, fields, sizeof(fields) / sizeof *(fields), sizeof(row) }
const pc_score_part pc_score_parts[PC_SCORE_PARTS] = {
    PART("sums", sum_fields, pc_score_sum),
    PART("missing", missing_fields, pc_score_missing),
    PART("pairs", pair_fields, pc_score_pair),
    PART("groups", group_fields, pc_score_group),
};

const void *pc_score_part_rows(const pc_score *score, int part, int64_t *count) {
    const void *rows[PC_SCORE_PARTS] = {score->sums, score->missing, score->pairs, score->groups};
    int64_t counts[PC_SCORE_PARTS] = {score->sum_count, score->missing_count, score->pair_count, score->group_count};
    *count = counts[part];
    return rows[part];
}

bool pc_score_part_at(const pc_score *score, int part, pc_score_part_table *table) {
    if (part < 0 || part >= PC_SCORE_PARTS) return false;
    const pc_score_part *of = &pc_score_parts[part];
    *table = (pc_score_part_table){.row_size = of->row_size, .fields = of->field, .field_count = of->field_count};
    table->rows = pc_score_part_rows(score, part, &table->row_count);
    return true;
}
