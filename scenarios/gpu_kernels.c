/* What a GPU's file says of measured kernels: which profile of the library has them, and what that answers. */
#include "models/workload/format.h"
#include "scenarios/library_private.h"

#include <stdio.h>
#include <string.h>

/* A format of products, or one of two words. */
static int32_t bits_of(const char *word) {
    pc_product_format format;
    if (strcmp(word, "attention") == 0) return PC_KERNELS_FOR_ATTENTION;
    if (strcmp(word, "transfers") == 0) return PC_KERNELS_FOR_TRANSFERS;
    return pc_product_format_find(word, &format) ? 1 << format : 0;
}

static pc_code read_word(const pc_tree *tree, const pc_node *node, int32_t *bits, pc_error *error) {
    int32_t found = bits_of(node->text);
    *bits |= found;
    if (found) return PC_OK;
    return pc_node_refuse(tree, node, error,
                          "%.40s: nothing that kernels answer; expected bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, "
                          "attention or transfers",
                          node->text);
}

/* All, where the file has kernels and says no more. */
static pc_code read_answers(const pc_tree *tree, pc_gpu *gpu, pc_error *error) {
    const pc_node *list = pc_node_find(tree->nodes, "kernels_for");
    pc_code code = PC_OK;
    gpu->kernels_for = list || !gpu->kernels[0] ? 0 : PC_KERNELS_FOR_ALL;
    if (list && !gpu->kernels[0])
        return pc_node_refuse(tree, list, error, "stands without kernels; expected the profile that answers");
    if (!list) return PC_OK;
    for (const pc_node *x = pc_node_first(list); x < pc_node_end(list) && !code; x = pc_node_end(x))
        code = read_word(tree, x, &gpu->kernels_for, error);
    return code;
}

static pc_code read_kernels(const pc_tree *tree, pc_gpu *gpu, pc_error *error) {
    const pc_node *node = pc_node_find(tree->nodes, "kernels");
    if (!node) return PC_OK;
    if (!pc_library_find(PC_LIBRARY_PROFILES, node->text) || strlen(node->text) >= sizeof gpu->kernels)
        return pc_node_refuse(tree, node, error,
                              "%.40s: no profile of the library; expected one that `pipecast list profiles` shows, or "
                              "none and --profile FILE.h5 with a run",
                              node->text);
    snprintf(gpu->kernels, sizeof gpu->kernels, "%s", node->text);
    return PC_OK;
}

static pc_code read_basis(const pc_tree *tree, pc_gpu *gpu, pc_error *error) {
    static const char *const bases[PC_GPU_BASES] = {"datasheet", "fitted-to-runs", "measured-kernels"};
    const pc_node *node = pc_node_find(tree->nodes, "basis");
    if (!node) return PC_OK;
    for (int32_t i = 0; i < PC_GPU_BASES; i++)
        if (strcmp(node->text, bases[i]) == 0) {
            gpu->basis = i;
            return PC_OK;
        }
    return pc_node_refuse(tree, node, error, "%.40s: no basis; expected measured-kernels, fitted-to-runs or datasheet",
                          node->text);
}

/* "2026-11-23". */
static bool is_date(const char *text) {
    static const char form[] = "dddd-dd-dd";
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (strlen(text) != sizeof form - 1) return false;
    for (size_t i = 0; i < sizeof form - 1; i++) {
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == 'd' ? !is_digit : text[i] != '-') return false;
    }
    int month = 10 * (text[5] - '0') + text[6] - '0', day = 10 * (text[8] - '0') + text[9] - '0';
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

static pc_code read_date(const pc_tree *tree, pc_gpu *gpu, pc_error *error) {
    const pc_node *node = pc_node_find(tree->nodes, "basis_date");
    if (!node) return PC_OK;
    if (!is_date(node->text))
        return pc_node_refuse(tree, node, error, "%.40s: no date; expected a day as 2026-11-23", node->text);
    snprintf(gpu->basis_date, sizeof gpu->basis_date, "%.10s", node->text);
    return PC_OK;
}

pc_code pc_gpu_kernels_read(const pc_tree *tree, pc_gpu *gpu, pc_error *error) {
    pc_code code = read_kernels(tree, gpu, error);
    if (!code) code = read_answers(tree, gpu, error);
    if (!code) code = read_basis(tree, gpu, error);
    return code ? code : read_date(tree, gpu, error);
}

/* Of the products of its layers. */
static int32_t formats_of(const pc_model *model) {
    int32_t bits = 0;
    if (!pc_low_precision_is_on(&model->low)) return 1 << model->precision;
    for (int i = 0; i < PC_LOW_PRODUCTS; i++)
        if (pc_product_format_is_low(model->low.product[i])) bits |= 1 << model->low.product[i];
    return bits;
}

/* A profile that knows nothing of a run's products leaves that run as it is without, to the last bit. */
const char *pc_gpu_kernels_of(const pc_gpu *gpu, const pc_model *model) {
    bool answers = gpu->kernels[0] && (gpu->kernels_for & formats_of(model)) != 0;
    const pc_library_file *file = answers ? pc_library_find(PC_LIBRARY_PROFILES, gpu->kernels) : NULL;
    return file ? file->name : NULL;
}
