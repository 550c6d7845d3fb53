#include "commands.h"
#include "table.h"
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16

typedef policy_string_t text_t;
typedef portcullis_policy_types_word_t word_t;
typedef enum { ARITY_NONE, ARITY_ONE, ARITY_ATTACHED } arity_t;

typedef struct {
    text_t names;
    arity_t arity;
} entry_t;

typedef struct {
    text_t text;
    bool known, certain, alias;
    size_t at;
} operand_t;

typedef struct {
    text_t name, value;
    bool has_value, unknown, certain, letter;
} option_t;

// The words of a command: options by their first spelling, operands, and whether
// an uncertain word may be an option (`open`).
typedef struct {
    text_t program, level;
    operand_t *operands;
    option_t *options;
    const portcullis_row_t **rows;
    size_t operand_count, option_count, row_count, inner;
    bool open, runs_inner, sure, ended, settled, pending, doubtful;
} line_t;

static text_t text_of(const char *text) {
    text_t made = {(uint8_t *)text, strlen(text)};
    return made;
}

static text_t part(text_t text, size_t from, size_t to) {
    text_t made = {text.ptr + from, to - from};
    return made;
}

static bool same(text_t one, text_t other) { return one.len == other.len && memcmp(one.ptr, other.ptr, one.len) == 0; }

static bool starts(text_t text, text_t with) { return text.len >= with.len && same(part(text, 0, with.len), with); }

static bool contains(text_t text, text_t wanted) {
    for (size_t index = 0; index + wanted.len <= text.len; index++) {
        if (same(part(text, index, index + wanted.len), wanted)) return true;
    }
    return false;
}

// The first place of a byte, or the length.
static size_t find(text_t text, uint8_t wanted) {
    size_t index = 0;
    while (index < text.len && text.ptr[index] != wanted) index++;
    return index;
}

static text_t last_component(text_t path) {
    while (find(path, '/') < path.len) path = part(path, find(path, '/') + 1, path.len);
    return path;
}

// Takes the part before a separator from a list.
static bool next_part(text_t *list, uint8_t separator, text_t *taken) {
    if (list->len == 0) return false;
    size_t end = find(*list, separator);
    *taken = part(*list, 0, end);
    *list = part(*list, end < list->len ? end + 1 : end, list->len);
    return true;
}

static text_t joined(text_t one, text_t other) {
    text_t made = {malloc(one.len + other.len + 1), one.len + other.len + 1};
    memcpy(made.ptr, one.ptr, one.len);
    made.ptr[one.len] = ' ';
    memcpy(made.ptr + one.len + 1, other.ptr, other.len);
    return made;
}

static const portcullis_row_t *row_of(text_t path) {
    size_t low = 0, high = PORTCULLIS_ROW_COUNT;
    while (low < high) {
        size_t middle = (low + high) / 2;
        text_t known = text_of(PORTCULLIS_ROWS[middle].path);
        size_t shorter = known.len < path.len ? known.len : path.len;
        int order = memcmp(known.ptr, path.ptr, shorter);
        if (order == 0 && known.len == path.len) return &PORTCULLIS_ROWS[middle];
        if (order < 0 || (order == 0 && known.len < path.len)) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

static bool has(const portcullis_row_t *row, char trait) {
    text_t traits = text_of(row->traits);
    return find(traits, (uint8_t)trait) < traits.len;
}

static bool last_has(const line_t *line, char trait) {
    return line->row_count > 0 && has(line->rows[line->row_count - 1], trait);
}

static bool program_has(const line_t *line, char trait) { return line->row_count > 0 && has(line->rows[0], trait); }

// Takes the next option from the options of a row.
static bool next_entry(text_t *options, entry_t *entry) {
    text_t taken;
    while (next_part(options, ' ', &taken)) {
        if (taken.len == 0 || find(taken, '>') < taken.len) continue;
        uint8_t end = taken.ptr[taken.len - 1];
        entry->arity = end == '=' ? ARITY_ONE : end == '?' ? ARITY_ATTACHED : ARITY_NONE;
        entry->names = entry->arity == ARITY_NONE ? taken : part(taken, 0, taken.len - 1);
        return true;
    }
    return false;
}

static text_t first_name(entry_t entry) { return part(entry.names, 0, find(entry.names, '|')); }

// Whether an option has this spelling, or one that starts so.
static bool is_spelled(entry_t entry, text_t name, bool cut) {
    text_t spelling;
    while (next_part(&entry.names, '|', &spelling)) {
        if (cut ? starts(spelling, name) : same(spelling, name)) return true;
    }
    return false;
}

static bool entry_of(const line_t *line, text_t name, entry_t *entry) {
    size_t places = program_has(line, 'e') ? line->row_count : line->row_count > 0;
    for (size_t index = 0; index < places; index++) {
        text_t options = text_of(line->rows[line->row_count - 1 - index]->options);
        while (next_entry(&options, entry)) {
            if (is_spelled(*entry, name, false)) return true;
        }
    }
    return false;
}

static void push_row(line_t *line, const portcullis_row_t *row) {
    line->rows = realloc(line->rows, (line->row_count + 1) * sizeof *line->rows);
    line->rows[line->row_count++] = row;
}

static void push(line_t *line, size_t at, text_t text, bool known, bool certain, bool alias) {
    line->operands = realloc(line->operands, (line->operand_count + 1) * sizeof *line->operands);
    operand_t operand = {text, known, certain, alias, at};
    line->operands[line->operand_count++] = operand;
}

static void give(line_t *line, text_t name, text_t value, bool has_value, bool certain, bool letter) {
    line->options = realloc(line->options, (line->option_count + 1) * sizeof *line->options);
    option_t option = {name, value, has_value, false, certain, letter};
    line->options[line->option_count++] = option;
}

static void begin_inner(line_t *line, size_t at) {
    if (!last_has(line, 'r') || line->runs_inner) return;
    line->runs_inner = true;
    line->inner = at;
}

static void unknown_word(line_t *line, size_t at) {
    push(line, at, text_of(""), false, false, false);
    line->open |= !line->ended;
    line->sure = line->doubtful = false;
    begin_inner(line, at);
}

// Enters a row, or the one that it is the same as.
static void descend(line_t *line, const portcullis_row_t *row, size_t at) {
    if (!has(row, '=')) {
        line->level = text_of(row->path);
        push_row(line, row);
        return;
    }
    bool certain = true;
    for (size_t index = 0; index < line->operand_count; index++) certain &= line->operands[index].certain;
    text_t target = text_of(row->options), name;
    line->operand_count = line->row_count = 0;
    for (size_t index = 0; next_part(&target, ' ', &name); index++) {
        line->level = index == 0 ? name : joined(line->level, name);
        const portcullis_row_t *found = row_of(line->level);
        if (found) push_row(line, found);
        if (index == 0) line->program = name;
        else push(line, at, name, true, certain, false);
    }
}

static void operand(line_t *line, size_t at, text_t text) {
    bool certain = line->sure && !line->doubtful;
    line->doubtful = false;
    if (!line->settled) {
        const portcullis_row_t *row = row_of(joined(line->level, text));
        if (row) {
            push(line, at, text, true, certain, false);
            descend(line, row, at);
            return;
        }
        if (certain && line->row_count == 1 && program_has(line, 'u')) {
            push(line, at, text, true, certain, true);
            line->open = line->settled = true;
            return;
        }
    }
    push(line, at, text, true, certain, false);
    line->settled |= certain;
    begin_inner(line, at);
    line->ended |= last_has(line, 'r') || last_has(line, 'o');
}

static void known_option(line_t *line, entry_t entry, text_t value, bool has_value) {
    give(line, first_name(entry), value, has_value, line->sure, false);
    line->pending = entry.arity == ARITY_ONE && !has_value;
}

static void abbreviated(line_t *line, text_t name, text_t value, bool has_value) {
    entry_t entry, only = {0};
    size_t count = 0;
    bool takes = false;
    if (name.len > 2 && program_has(line, 'a')) {
        text_t options = text_of(line->rows[line->row_count - 1]->options);
        while (next_entry(&options, &entry)) {
            if (!is_spelled(entry, name, true)) continue;
            only = entry;
            count++;
        }
        options = text_of(line->rows[line->row_count - 1]->options);
        while (count > 1 && next_entry(&options, &entry)) {
            if (!is_spelled(entry, name, true)) continue;
            give(line, first_name(entry), value, has_value, false, false);
            takes |= entry.arity == ARITY_ONE;
        }
    }
    if (count == 1) {
        known_option(line, only, value, has_value);
        return;
    }
    if (count == 0) give(line, name, value, has_value, line->sure, false);
    line->doubtful = !has_value && (count == 0 || takes);
}

static void letters(line_t *line, text_t text) {
    bool is_known = true, starts_unknown = false;
    text_t none = text_of("");
    for (size_t index = 1; index < text.len; index++) {
        uint8_t *letter = malloc(2);
        letter[0] = '-';
        letter[1] = text.ptr[index];
        text_t name = {letter, 2};
        entry_t entry;
        bool certain = line->sure && is_known;
        if (!entry_of(line, name, &entry)) {
            starts_unknown |= index == 1;
            give(line, name, none, false, certain, starts_unknown && text.len > 2);
            is_known = false;
            line->doubtful = true;
        } else if (entry.arity == ARITY_NONE) {
            give(line, first_name(entry), none, false, certain, starts_unknown);
        } else {
            text_t rest = part(text, index + 1, text.len);
            give(line, first_name(entry), rest, rest.len > 0, certain, starts_unknown);
            line->pending = is_known && rest.len == 0 && entry.arity == ARITY_ONE;
            break;
        }
    }
    if (starts_unknown && text.len > 2) {
        size_t equals = find(text, '=');
        bool has_value = equals < text.len;
        text_t value = has_value ? part(text, equals + 1, text.len) : none;
        give(line, part(text, 0, equals), value, has_value, line->sure, false);
    }
}

static void option(line_t *line, text_t text) {
    bool single = program_has(line, 's'), is_long = starts(text, text_of("--"));
    if (!is_long && !single) {
        letters(line, text);
        return;
    }
    if (single && is_long) text = part(text, 1, text.len);
    size_t equals = find(text, '=');
    bool has_value = equals < text.len;
    text_t name = part(text, 0, equals), value = has_value ? part(text, equals + 1, text.len) : text_of("");
    entry_t entry;
    if (entry_of(line, name, &entry)) known_option(line, entry, value, has_value);
    else abbreviated(line, name, value, has_value);
}

static void read_word(line_t *line, size_t at, text_t text, bool literal) {
    if (line->pending) {
        line->pending = false;
        option_t *last = &line->options[line->option_count - 1];
        last->value = text;
        last->has_value = literal;
        last->unknown = !literal;
        if (!literal) unknown_word(line, at);
    } else if (!literal) {
        unknown_word(line, at);
    } else if (line->ended || text.len < 2 || text.ptr[0] != '-') {
        operand(line, at, text);
    } else {
        line->doubtful = false;
        if (same(text, text_of("--"))) line->ended = true;
        else option(line, text);
    }
}

// Parses a command; false for one without a certain program.
static bool parse(line_t *line, const word_t *words, size_t count) {
    memset(line, 0, sizeof *line);
    if (count == 0 || !words[0].literal) return false;
    text_t name = last_component(words[0].value);
    line->program = line->level = name;
    line->sure = true;
    size_t dash = find(name, '-');
    const portcullis_row_t *row = row_of(name), *head = dash < name.len ? row_of(part(name, 0, dash)) : NULL;
    if (row) {
        descend(line, row, 0);
    } else if (head && has(head, 'd')) {
        line->program = line->level = part(name, 0, dash);
        push_row(line, head);
        operand(line, 0, part(name, dash + 1, name.len));
    }
    for (size_t at = 1; at < count; at++) read_word(line, at, words[at].value, words[at].literal);
    return true;
}

// Whether a line runs another command that cannot be known for certain and may be
// this program.
static bool may_run_inside(const line_t *line, text_t program) {
    if (!last_has(line, 'r')) return false;
    for (size_t index = 0; index < line->option_count; index++) {
        if (line->options[index].has_value && contains(line->options[index].value, program)) return true;
    }
    bool is_first = true;
    for (size_t index = 0; line->runs_inner && index < line->operand_count; index++) {
        const operand_t *one = &line->operands[index];
        if (one->at < line->inner) continue;
        if (is_first && (!one->certain || same(last_component(one->text), program))) return !one->certain;
        if (one->known && contains(one->text, program)) return true;
        is_first = false;
    }
    return false;
}

static portcullis_match_t certainty(bool certain) { return certain ? PORTCULLIS_YES : PORTCULLIS_MAYBE; }

static portcullis_match_t of_operands(const line_t *wanted, const line_t *line) {
    size_t names = wanted->operand_count, matched = 0;
    while (matched < names && matched < line->operand_count && line->operands[matched].certain &&
           same(line->operands[matched].text, wanted->operands[matched].text)) {
        matched++;
    }
    if (matched == names) return PORTCULLIS_YES;
    // The numbers of names that the words so far may have matched.
    bool *reached = malloc(names + 1);
    memset(reached, 0, names + 1);
    reached[0] = true;
    for (size_t index = 0; index < line->operand_count && !reached[names]; index++) {
        const operand_t *one = &line->operands[index];
        bool is_any = one->alias || !one->known, before = false;
        for (size_t place = 0; place <= names; place++) {
            bool here = reached[place];
            bool follows = before && (is_any || same(one->text, wanted->operands[place - 1].text));
            reached[place] = (here && (is_any || !one->certain)) || follows;
            before = here || (is_any && before);
        }
    }
    return reached[names] ? PORTCULLIS_MAYBE : PORTCULLIS_NO;
}

static bool is_off(text_t value) {
    static const char *const OFF[] = {"false", "no", "none", "off", "0"};
    for (size_t index = 0; index < sizeof OFF / sizeof *OFF; index++) {
        if (same(value, text_of(OFF[index]))) return true;
    }
    return false;
}

static portcullis_match_t of_value(const option_t *wanted, const option_t *given) {
    if (wanted->has_value) {
        if (given->unknown) return PORTCULLIS_MAYBE;
        if (!given->has_value || !same(wanted->value, given->value)) return PORTCULLIS_NO;
    } else if (given->has_value && is_off(given->value)) {
        return PORTCULLIS_MAYBE;
    }
    return certainty(given->certain);
}

// The best match of what counts as an option: other options, and operands.
static portcullis_match_t of_covered(const line_t *wanted, const option_t *option, const line_t *line) {
    portcullis_match_t best = PORTCULLIS_NO, match;
    for (size_t row = 0; row < wanted->row_count; row++) {
        text_t options = text_of(wanted->rows[row]->options), taken, covered;
        while (next_part(&options, ' ', &taken)) {
            size_t sign = find(taken, '>');
            if (sign == taken.len || !same(part(taken, 0, sign), option->name)) continue;
            text_t list = part(taken, sign + 1, taken.len);
            while (next_part(&list, ',', &covered)) {
                for (size_t index = 0; index < line->option_count; index++) {
                    if (!same(line->options[index].name, covered)) continue;
                    match = of_value(option, &line->options[index]);
                    if (match > best) best = match;
                }
                for (size_t index = 0; covered.ptr[0] != '-' && index < line->operand_count; index++) {
                    if (!line->operands[index].known || !starts(line->operands[index].text, covered)) continue;
                    match = certainty(line->operands[index].certain);
                    if (match > best) best = match;
                }
            }
        }
    }
    return best;
}

static bool is_long(text_t name) { return starts(name, text_of("--")); }

static uint8_t first_letter(text_t name) {
    size_t index = 0;
    while (index < name.len && name.ptr[index] == '-') index++;
    uint8_t letter = index < name.len ? name.ptr[index] : 0;
    return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter;
}

// An option that the table does not know may be a spelling of another unknown one.
static bool may_spell(const line_t *wanted, const option_t *option, const line_t *line) {
    entry_t entry;
    if (entry_of(wanted, option->name, &entry)) return false;
    for (size_t index = 0; index < line->option_count; index++) {
        text_t name = line->options[index].name;
        if (!entry_of(line, name, &entry) && is_long(name) != is_long(option->name) &&
            first_letter(name) == first_letter(option->name)) {
            return true;
        }
    }
    if (is_long(option->name) || option->name.len < 3) return false;
    for (size_t place = 1; place < option->name.len; place++) {
        bool given = false;
        for (size_t index = 0; index < line->option_count; index++) {
            text_t name = line->options[index].name;
            given |= name.len == 2 && name.ptr[1] == option->name.ptr[place];
        }
        if (!given) return false;
    }
    return true;
}

static bool is_negated(const option_t *option, const line_t *line) {
    text_t no = text_of("--no-");
    for (size_t index = 0; is_long(option->name) && index < line->option_count; index++) {
        text_t name = line->options[index].name;
        if (starts(name, no) && same(part(name, no.len, name.len), part(option->name, 2, option->name.len))) return true;
    }
    return false;
}

static portcullis_match_t of_option(const line_t *wanted, const option_t *option, const line_t *line) {
    portcullis_match_t best = of_covered(wanted, option, line);
    for (size_t index = 0; index < line->option_count; index++) {
        if (!same(line->options[index].name, option->name)) continue;
        portcullis_match_t match = of_value(option, &line->options[index]);
        if (match > best) best = match;
    }
    if (best == PORTCULLIS_YES && is_negated(option, line)) return PORTCULLIS_MAYBE;
    if (best == PORTCULLIS_NO && (line->open || may_spell(wanted, option, line))) return PORTCULLIS_MAYBE;
    return best;
}

static portcullis_match_t of_line(const line_t *wanted, const line_t *line) {
    portcullis_match_t worst = of_operands(wanted, line);
    for (size_t index = 0; index < wanted->option_count; index++) {
        if (wanted->options[index].letter) continue;
        portcullis_match_t match = of_option(wanted, &wanted->options[index], line);
        if (match < worst) worst = match;
    }
    return worst;
}

// The words of a pattern.
static word_t *pattern_words(const char *pattern, size_t *count) {
    text_t list = text_of(pattern), taken;
    word_t *words = NULL;
    *count = 0;
    while (next_part(&list, ' ', &taken)) {
        if (taken.len == 0) continue;
        words = realloc(words, (*count + 1) * sizeof *words);
        words[*count].value = taken;
        words[(*count)++].literal = true;
    }
    return words;
}

portcullis_match_t portcullis_matches_words(const char *pattern, const word_t *words, size_t count) {
    size_t wanted_count;
    const word_t *wanted_words = pattern_words(pattern, &wanted_count);
    line_t wanted, line;
    if (!parse(&wanted, wanted_words, wanted_count)) return PORTCULLIS_NO;
    text_t path = wanted_words[0].value;
    bool is_path = find(path, '/') < path.len;
    portcullis_match_t best = PORTCULLIS_NO;
    for (size_t depth = 0; depth < DEPTH_MAX; depth++) {
        if (count == 0) return best;
        if (!parse(&line, words, count)) return best > PORTCULLIS_MAYBE ? best : PORTCULLIS_MAYBE;
        if (is_path ? same(path, words[0].value) : same(wanted.program, line.program)) {
            portcullis_match_t match = of_line(&wanted, &line);
            if (match > best) best = match;
        }
        if (best == PORTCULLIS_NO && may_run_inside(&line, wanted.program)) best = PORTCULLIS_MAYBE;
        if (!line.runs_inner) return best;
        words += line.inner;
        count -= line.inner;
    }
    return best > PORTCULLIS_MAYBE ? best : PORTCULLIS_MAYBE;
}

portcullis_match_t portcullis_matches(const portcullis_policy_types_request_t *request, const char *pattern) {
    const portcullis_policy_types_command_execution_t *command;
    if (request->action.tag == PORTCULLIS_POLICY_TYPES_ACTION_COMMAND) command = &request->action.val.command;
    else if (request->action.tag == PORTCULLIS_POLICY_TYPES_ACTION_ESCALATION) command = &request->action.val.escalation;
    else return PORTCULLIS_NO;
    if (command->parsed.is_err) return PORTCULLIS_MAYBE;
    const portcullis_policy_types_parsed_script_t *script = &command->parsed.val.ok;
    const portcullis_policy_types_script_features_t hiding =
        PORTCULLIS_POLICY_TYPES_SCRIPT_FEATURES_DYNAMIC | PORTCULLIS_POLICY_TYPES_SCRIPT_FEATURES_REDEFINITION;
    portcullis_match_t best = script->features & hiding ? PORTCULLIS_MAYBE : PORTCULLIS_NO;
    for (size_t index = 0; index < script->commands.len; index++) {
        portcullis_policy_types_list_word_t argv = script->commands.ptr[index].argv;
        portcullis_match_t match = portcullis_matches_words(pattern, argv.ptr, argv.len);
        if (match > best) best = match;
    }
    return best;
}

bool portcullis_runs(const portcullis_policy_types_request_t *request, const char *pattern) {
    return portcullis_matches(request, pattern) == PORTCULLIS_YES;
}

bool portcullis_could_run(const portcullis_policy_types_request_t *request, const char *pattern) {
    return portcullis_matches(request, pattern) != PORTCULLIS_NO;
}
