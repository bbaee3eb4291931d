#include "tests/fuzz/foreign.h"

#include "scenarios/sections.h"
#include "scenarios/setting.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_scenario(const pc_text *text) {
    pc_error error = {0};
    pc_tree tree = {.nodes = NULL};
    pc_setting setting = {.stages = NULL};
    fuzz_require(!pc_source_from_bytes("imported.yaml", text->data, text->size, &tree.source, &error),
                 "memory is not short");
    fuzz_require(!pc_tree_build(&tree, &error), "what is written is YAML");
    fuzz_require(!pc_schema_check(&pc_file_schema, &tree, &error), "what is written has known keys, once each");
    fuzz_check_error(pc_setting_parse(&tree, pc_node_find(tree.nodes, "setting"), &setting, &error), &error);
    pc_tree_free(&tree);
}

void fuzz_foreign(pc_import_format format, const uint8_t *data, size_t size) {
    pc_error error = {0};
    pc_import_text made = {{.data = NULL}, {.data = NULL}};
    pc_code code = pc_import_bytes(format, "folder/config", (const char *)data, size, &made, &error);
    fuzz_check_error(code, &error);
    if (!code) {
        fuzz_require(made.notes.data && !strpbrk(made.notes.data, "\n\r"), "notes are one line");
        check_scenario(&made.scenario);
    }
    pc_import_text_free(&made);
}
