#include "cli/list_json.h"

#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>

void list_json_next(list_json *list) {
    pc_text_printf(&list->text, "%s\n  {", list->objects == 0 ? "[" : "},");
    list->objects++;
    list->members = 0;
}

static void add_name(list_json *list, const char *name) {
    pc_text_printf(&list->text, "%s\"%s\": ", list->members++ == 0 ? "" : ", ", name);
}

void list_json_raw(list_json *list, const char *name, const char *value) {
    add_name(list, name);
    pc_text_printf(&list->text, "%s", value);
}

void list_json_text(list_json *list, const char *name, const char *value) {
    add_name(list, name);
    pc_text_add_json(&list->text, value);
}

void list_json_integer(list_json *list, const char *name, int64_t value) {
    add_name(list, name);
    pc_text_printf(&list->text, "%" PRId64, value);
}

void list_json_number(list_json *list, const char *name, double value) {
    char number[PC_NUMBER_SIZE] = "null";
    pc_number_scope scope = {0};
    list->text.failed = list->text.failed || !pc_number_scope_enter(&scope);
    if (list->text.failed) return;
    if (isfinite(value)) pc_number_format(value, number);
    pc_number_scope_leave(&scope);
    list_json_raw(list, name, number);
}

int list_json_end(list_json *list) {
    pc_error error = {0};
    pc_text_printf(&list->text, list->objects == 0 ? "[]\n" : "}\n]\n");
    int status = EXIT_DONE;
    if (list->text.failed) {
        pc_error_no_memory(&error);
        status = report(&error);
    } else {
        (void)fwrite(list->text.data, 1, list->text.size, stdout); /* finish_output looks at the stream */
    }
    pc_text_free(&list->text);
    return finish_output(status);
}
