#include "models/workload/layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- layouts that have a name ---- */

bool pc_layout_divides(pc_cut_layout layout, int64_t layers, int parts) {
    switch (layout) {
    case PC_CUT_EVEN:
        return layers % parts == 0;
    case PC_CUT_ENDS:
        return (layers + 2) % parts == 0;
    case PC_CUT_OWN:
        return parts >= 3 && layers % (parts - 2) == 0;
    case PC_CUT_BALANCED:
    case PC_CUT_BALANCED_MEMORY:
        return layers + 2 >= parts;
    default:
        return false;
    }
}

pc_cut_layout pc_layout_auto(int64_t layers, int parts) {
    for (pc_cut_layout layout = PC_CUT_EVEN; layout <= PC_CUT_OWN; layout++)
        if (pc_layout_divides(layout, layers, parts)) return layout;
    return PC_CUT_EVEN;
}

const char *pc_layout_name(pc_cut_layout layout) {
    static const char *const names[] = {
        [PC_CUT_EVEN] = "even",     [PC_CUT_ENDS] = "ends",         [PC_CUT_OWN] = "own",
        [PC_CUT_LISTED] = "listed", [PC_CUT_BALANCED] = "balanced", [PC_CUT_BALANCED_MEMORY] = "balanced-memory"};
    return names[layout];
}

/* ---- reading ---- */

/* A text while it is read; places in it are counted from 1, in bytes. */
typedef struct layout_reader {
    const char *text;
    size_t at;
    pc_error *error;
} layout_reader;

static pc_code refuse(const layout_reader *reader, size_t at, const char *format, ...) {
    char problem[160];
    va_list values;
    va_start(values, format);
    vsnprintf(problem, sizeof problem, format, values);
    va_end(values);
    return pc_error_set(reader->error, PC_ERROR_INPUT, "%.40s: at %zu: %s", reader->text, at + 1, problem);
}

/* The whole number that stands here, with commas between its digits only if they have no meaning. */
static pc_code read_number(layout_reader *reader, bool skips_commas, int32_t *number) {
    size_t start = reader->at;
    int64_t value = 0;
    char c = reader->text[reader->at];
    if (c < '0' || c > '9') return refuse(reader, reader->at, "no number; expected one");
    if (c == '0' && reader->text[reader->at + 1] >= '0' && reader->text[reader->at + 1] <= '9')
        return refuse(reader, reader->at, "begins with a zero; expected a number that does not");
    for (; (c >= '0' && c <= '9') || (skips_commas && c == ','); c = reader->text[++reader->at]) {
        if (c != ',') value = 10 * value + (c - '0');
        if (value > INT32_MAX) return refuse(reader, start, "too large a number; expected up to %d", INT32_MAX);
    }
    *number = (int32_t)value;
    return PC_OK;
}

static void skip_blanks(layout_reader *reader) {
    while (reader->text[reader->at] == ' ') reader->at++;
}

static pc_code parse_numbers(layout_reader *reader, int32_t *layers, int *count) {
    int32_t number = 0;
    for (*count = 0;;) {
        skip_blanks(reader);
        pc_code code = read_number(reader, false, &number);
        if (code) return code;
        if (*count == PC_PARTS_MAX)
            return refuse(reader, reader->at, "more than %d parts; expected fewer", PC_PARTS_MAX);
        if (layers) layers[*count] = number;
        (*count)++;
        skip_blanks(reader);
        if (reader->text[reader->at] == '\0') return PC_OK;
        if (reader->text[reader->at] != ',')
            return refuse(reader, reader->at, "no list; expected numbers with commas between them");
        reader->at++;
    }
}

/* ---- Megatron's notation ---- */

/* What was read so far; the last part is still open. */
typedef struct layout_parts {
    int32_t *layers; /* NULL: parts are only counted */
    int count;       /* of parts that are closed */
    int64_t here;    /* layers of the open one */
    int64_t total;
    int32_t predictions; /* layers of multi-token prediction, and the part that has them */
    int predicting;
    bool has_any, has_embedding, has_loss;
} layout_parts;

static pc_code add_layers(const layout_reader *reader, size_t at, int64_t layers, layout_parts *parts) {
    if (layers > INT32_MAX - parts->total) return refuse(reader, at, "too many layers; expected up to %d", INT32_MAX);
    parts->total += layers;
    parts->here += layers;
    return PC_OK;
}

static pc_code add_predictions(const layout_reader *reader, size_t at, int32_t times, layout_parts *parts) {
    if (parts->predictions > 0 && parts->predicting != parts->count)
        return refuse(reader, at, "m in a second part; expected all m in one");
    if (times > INT16_MAX - parts->predictions) return refuse(reader, at, "too many m; expected up to %d", INT16_MAX);
    parts->predictions += times;
    parts->predicting = parts->count;
    return PC_OK;
}

static pc_code close_parts(const layout_reader *reader, size_t at, int32_t times, layout_parts *parts) {
    if (times >= PC_PARTS_MAX - parts->count)
        return refuse(reader, at, "too many parts; expected up to %d", PC_PARTS_MAX);
    for (int32_t i = 0; i < times; i++) {
        if (parts->layers) parts->layers[parts->count] = (int32_t)parts->here;
        parts->count++;
        parts->here = 0;
    }
    return PC_OK;
}

static pc_code add_symbol(const layout_reader *reader, size_t at, int32_t times, layout_parts *parts) {
    char symbol = reader->text[at];
    bool is_first = !parts->has_any;
    if (times == 0) return PC_OK;
    if (parts->has_loss) return refuse(reader, at, "behind the loss; expected L once, at the end");
    parts->has_any = true;
    if (symbol == 't' && parts->predictions > 0) return refuse(reader, at, "t behind m; expected L alone, or more m");
    if (symbol == 't') return add_layers(reader, at, times, parts);
    if (symbol == 'm') return add_predictions(reader, at, times, parts);
    if (symbol == '|') return close_parts(reader, at, times, parts);
    bool fits = times == 1 && (symbol == 'L' || is_first);
    if (!fits) return refuse(reader, at, "%c here; expected E once, at the start, and L once, at the end", symbol);
    if (symbol == 'E')
        parts->has_embedding = true;
    else
        parts->has_loss = true;
    return PC_OK;
}

static char next_of(layout_reader *reader) {
    while (reader->text[reader->at] == ',') reader->at++;
    return reader->text[reader->at];
}

/* "*4", if it stands here; 1 otherwise. */
static pc_code read_times(layout_reader *reader, int32_t *times) {
    *times = 1;
    if (next_of(reader) != '*') return PC_OK;
    reader->at++;
    next_of(reader);
    pc_code code = read_number(reader, true, times);
    if (!code && next_of(reader) == '*') return refuse(reader, reader->at, "a second factor; expected one");
    return code;
}

static pc_code refuse_symbol(const layout_reader *reader) {
    unsigned char c = (unsigned char)reader->text[reader->at];
    if (c == '(') return refuse(reader, reader->at, "a group in a group; expected none, as in Megatron-LM");
    if (c == ')') return refuse(reader, reader->at, "')' without '('; expected a group such as (tt|)*4");
    if (c == '*') return refuse(reader, reader->at, "'*' behind nothing; expected what to repeat before it");
    return refuse(reader, reader->at, "'%c'; expected E, t, m, L, |, *, ( or )", c > ' ' && c < 0x7f ? c : '?');
}

/* One symbol and how often it stands there. */
static pc_code read_symbol(layout_reader *reader, layout_parts *parts) {
    size_t at = reader->at;
    int32_t times;
    if (!strchr("EtmL|", reader->text[at])) return refuse_symbol(reader);
    reader->at++;
    pc_code code = read_times(reader, &times);
    return code ? code : add_symbol(reader, at, times, parts);
}

/* What stands from here to the ')' or the end. */
static pc_code read_symbols(layout_reader *reader, layout_parts *parts) {
    pc_code code = PC_OK;
    while (!code && next_of(reader) != ')' && reader->text[reader->at] != '\0') code = read_symbol(reader, parts);
    return code;
}

/* "(tt|)*4": read once to know what is in it, then as often as it says. Layers alone are multiplied, so that a factor
 * of two billion takes no time; of a group with parts or m it is bounded by their number, and E or L come but once. */
static pc_code read_group(layout_reader *reader, layout_parts *parts) {
    size_t start = reader->at++, body = reader->at;
    layout_parts once = {.layers = NULL};
    int32_t times;
    if (next_of(reader) == ')') return refuse(reader, start, "an empty group; expected one such as (tt|)*4");
    pc_code code = read_symbols(reader, &once);
    if (code) return code;
    if (reader->text[reader->at] == '\0')
        return refuse(reader, start, "'(' without ')'; expected a group such as (tt|)*4");
    reader->at++;
    if (next_of(reader) != '*')
        return refuse(reader, reader->at, "a group without a factor; expected one such as (tt|)*4");
    code = read_times(reader, &times);
    if (code || times == 0 || !once.has_any) return code;
    bool is_layers = once.count == 0 && once.predictions == 0 && !once.has_embedding && !once.has_loss &&
                     !parts->has_loss && parts->predictions == 0;
    if (is_layers) {
        parts->has_any = true;
        return add_layers(reader, start, once.total * times, parts);
    }
    layout_reader again = *reader;
    for (int32_t i = 0; !code && i < times; i++) {
        again.at = body;
        code = read_symbols(&again, parts);
    }
    return code;
}

static pc_code parse_notation(layout_reader *reader, int32_t *layers, pc_layout_shape *shape) {
    layout_parts parts = {.layers = layers};
    pc_code code = PC_OK;
    while (!code && next_of(reader) != '\0')
        code = reader->text[reader->at] == '(' ? read_group(reader, &parts) : read_symbol(reader, &parts);
    if (code) return code;
    if (!parts.has_embedding) return refuse(reader, 0, "no embedding; expected E at the start");
    if (!parts.has_loss) return refuse(reader, reader->at, "no loss; expected L at the end");
    if (layers) layers[parts.count] = (int32_t)parts.here;
    *shape = (pc_layout_shape){.parts = parts.count + 1, .mtp_layers = (int16_t)parts.predictions};
    if (parts.predictions > 0) shape->mtp_ahead = (int16_t)(parts.count - parts.predicting);
    return PC_OK;
}

pc_code pc_layout_parse(const char *text, int32_t *layers, pc_layout_shape *shape, pc_error *error) {
    layout_reader x = {.text = text, .error = error};
    skip_blanks(&x);
    bool is_numbers = text[x.at] >= '0' && text[x.at] <= '9';
    *shape = (pc_layout_shape){.parts = 0};
    return is_numbers ? parse_numbers(&x, layers, &shape->parts) : parse_notation(&x, layers, shape);
}

/* ---- writing ---- */

/* A text that grows as long as it fits. */
typedef struct layout_text {
    char text[PC_LAYOUT_SIZE];
    size_t length; /* PC_LAYOUT_SIZE: it did not fit */
} layout_text;

static void put(layout_text *out, const char *format, ...) {
    va_list values;
    if (out->length == PC_LAYOUT_SIZE) return;
    va_start(values, format);
    int more = vsnprintf(out->text + out->length, PC_LAYOUT_SIZE - out->length, format, values);
    va_end(values);
    out->length = out->length + (size_t)more < PC_LAYOUT_SIZE ? out->length + (size_t)more : PC_LAYOUT_SIZE;
}

static void put_numbers(const int32_t *layers, int parts, layout_text *out) {
    for (int i = 0; i < parts; i++) put(out, "%s%" PRId32, i ? "," : "", layers[i]);
}

static void put_layers(int32_t layers, layout_text *out) {
    if (layers > 3)
        put(out, "t*%" PRId32, layers);
    else
        put(out, "%.*s", (int)layers, "ttt");
}

static void put_notation(const int32_t *layers, const pc_layout_shape *shape, layout_text *out) {
    int parts = shape->parts, predicting = shape->mtp_layers > 0 ? parts - 1 - shape->mtp_ahead : -1;
    put(out, "E");
    for (int i = 0; i < parts;) {
        int same = i + 1;
        while (i > 0 && i != predicting && same < parts - 1 && same != predicting && layers[same] == layers[i]) same++;
        bool is_group = same - i > 2;
        if (is_group) put(out, "(");
        put_layers(layers[i], out);
        for (int k = 0; i == predicting && k < shape->mtp_layers; k++) put(out, "m");
        put(out, i == parts - 1 ? "L" : "|");
        if (is_group) put(out, ")*%d", same - i);
        i = is_group ? same : i + 1;
    }
}

void pc_layout_write(const int32_t *layers, const pc_layout_shape *shape, char *text) {
    layout_text numbers = {.length = 0}, notation = {.length = 0};
    put_numbers(layers, shape->parts, &numbers);
    put_notation(layers, shape, &notation);
    bool is_notation = shape->mtp_layers > 0 || notation.length < numbers.length;
    const layout_text *chosen = is_notation ? &notation : &numbers;
    bool fits = chosen->length < PC_LAYOUT_SIZE;
    snprintf(text, PC_LAYOUT_SIZE, "%s", fits ? chosen->text : pc_layout_name(PC_CUT_LISTED));
}

/* ---- what to do instead ---- */

static size_t add_word(char *text, size_t used, const char *format, ...) {
    va_list values;
    if (used >= PC_LAYOUT_REMEDY_SIZE) return used;
    va_start(values, format);
    used += (size_t)vsnprintf(text + used, PC_LAYOUT_REMEDY_SIZE - used, format, values);
    va_end(values);
    return used;
}

static bool any_divides(int64_t layers, int64_t parts) {
    if (parts < 1 || parts > PC_PARTS_MAX || parts > layers + 2) return false;
    return pc_layout_divides(pc_layout_auto(layers, (int)parts), layers, (int)parts);
}

/* "pp 5 or 13": of the numbers below and above `number` whose product with `others` a layout divides, the nearest. */
static size_t add_nearest(int64_t layers, const char *key, int number, int others, char *text) {
    int below = number - 1, above = number + 1;
    size_t used = 0;
    while (below > 0 && !any_divides(layers, (int64_t)below * others)) below--;
    while ((int64_t)above * others <= PC_PARTS_MAX && !any_divides(layers, (int64_t)above * others)) above++;
    bool has_above = (int64_t)above * others <= PC_PARTS_MAX;
    if (below > 0) used = add_word(text, used, "%s %d", key, below);
    if (has_above) used = add_word(text, used, "%s %d", used ? " or" : key, above);
    return used;
}

/* With embedding and head as a layer each, and what is left over one each for the parts from the second on; false if
 * there are more parts than that, or none. */
static bool fill_list(int64_t layers, int parts, int32_t *list) {
    if (parts < 1) return false;
    int64_t most = (layers + 2) / parts, rest = (layers + 2) % parts;
    if (most == 0 || most > INT32_MAX - 1) return false;
    for (int i = 0; i < parts; i++) list[i] = (int32_t)(most + (i > 0 && i <= rest));
    list[0]--;
    list[parts - 1]--;
    return true;
}

void pc_layout_remedy(int64_t layers, const pc_cut *cut, int parts, char *text) {
    int32_t list[PC_PARTS_MAX];
    char written[PC_LAYOUT_SIZE];
    size_t used = 0;
    for (pc_cut_layout layout = PC_CUT_EVEN; layout <= PC_CUT_OWN; layout++)
        if (pc_layout_divides(layout, layers, parts))
            used = add_word(text, used, "%s%s", used ? " or " : "--layout ", pc_layout_name(layout));
    if (used) return;
    if (cut->pp > 0 && parts % cut->pp == 0) used = add_nearest(layers, "pp", cut->pp, parts / cut->pp, text);
    if (fill_list(layers, parts, list)) {
        pc_layout_write(list, &(pc_layout_shape){.parts = parts}, written);
        const char *quote = strpbrk(written, "|*") ? "'" : "";
        used = add_word(text, used, "%sa list such as --layout %s%s%s", used ? ", or " : "", quote, written, quote);
    }
    if (!used) add_word(text, used, "fewer parts");
}
