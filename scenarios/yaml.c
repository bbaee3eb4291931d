#include "scenarios/yaml.h"

#include "engine/alloc.h"

#include <string.h>

/* Stands in front of every block that libcyaml gets. */
typedef struct block_header {
    _Alignas(max_align_t) size_t capacity; /* bytes behind it */
} block_header;

/* libcyaml lets a list grow entry by entry; here blocks grow by doubling, so that long lists take linear time. */
static void *allocate(void *context, void *block, size_t size) {
    (void)context;
    block_header *header = block ? (block_header *)block - 1 : NULL;
    if (size == 0) {
        pc_free(header);
        return NULL;
    }
    if (header && size <= header->capacity) return block;
    size_t capacity = header && size < 2 * header->capacity ? 2 * header->capacity : size;
    header = pc_realloc(header, sizeof *header + capacity, 1);
    if (!header) return NULL;
    header->capacity = capacity;
    return header + 1;
}

static cyaml_config_t configuration(pc_complaint *complaint) {
    return (cyaml_config_t){.log_fn = complaint ? pc_complaint_log : NULL,
                            .log_ctx = complaint,
                            .mem_fn = allocate,
                            .log_level = CYAML_LOG_ERROR,
                            .flags = CYAML_CFG_NO_ALIAS};
}

static pc_code load(const pc_source *source, const cyaml_schema_value_t *schema, cyaml_cfg_flags_t flags, size_t size,
                    void **data, pc_error *error) {
    pc_complaint complaint = {.frame_count = 0};
    cyaml_config_t config = configuration(&complaint);
    config.flags |= flags;
    cyaml_data_t *made = NULL;
    cyaml_err_t failure = cyaml_load_data((const uint8_t *)source->text, source->size, &config, schema, &made, NULL);
    if (failure) return pc_complaint_explain(&complaint, failure, schema, source, error);
    /* libcyaml allocates at the first key it fills in; without one there is nothing. */
    if (!made) {
        made = allocate(NULL, NULL, size);
        if (!made) return pc_error_no_memory(error);
        memset(made, 0, size);
    }
    *data = made;
    return PC_OK;
}

pc_code pc_yaml_load(const pc_source *source, const cyaml_schema_value_t *schema, size_t size, void **data,
                     pc_error *error) {
    return load(source, schema, CYAML_CFG_DEFAULT, size, data, error);
}

pc_code pc_yaml_load_known(const pc_source *source, const cyaml_schema_value_t *schema, size_t size, void **data,
                           pc_error *error) {
    return load(source, schema, CYAML_CFG_IGNORE_UNKNOWN_KEYS, size, data, error);
}

void pc_yaml_free(const cyaml_schema_value_t *schema, void *data) {
    cyaml_config_t config = configuration(NULL);
    if (data) cyaml_free(&config, schema, data, 0);
}
