"""Patterns of commands, matched by the table of known programs in `portcullis_table.py`."""

from functools import lru_cache

from portcullis_table import ROWS

NO, MAYBE, YES = "no", "maybe", "yes"
_ORDER = (NO, MAYBE, YES)
_OFF = ("false", "no", "none", "off", "0")
_DEPTH_MAX = 16


def _most(matches):
    return max(matches, key=_ORDER.index, default=NO)


def _least(matches):
    return min(matches, key=_ORDER.index, default=YES)


def _certainty(certain):
    return YES if certain else MAYBE


class _Row:
    """A row of the table: traits, options as (spellings, arity), and what options cover."""

    def __init__(self, path, traits, text):
        self.path, self.traits = path, traits
        self.same_as = text if traits == "=" else None
        self.entries, self.covers = [], []
        for part in [] if self.same_as else text.split():
            if ">" in part:
                self.covers.append(part.split(">"))
            else:
                arity = {"=": "one", "?": "attached"}.get(part[-1], "none")
                self.entries.append((part.rstrip("=?").split("|"), arity))


@lru_cache(maxsize=None)
def _row(path):
    return _Row(path, *ROWS[path]) if path in ROWS else None


class _Option:
    def __init__(self, at, name, value, certain, letter):
        self.at, self.name, self.value, self.certain, self.letter = at, name, value, certain, letter
        self.unknown = False


class _Operand:
    def __init__(self, at, text, certain, alias):
        self.at, self.text, self.certain, self.alias = at, text, certain, alias


class _Line:
    """The words of a command: options by their first spelling, operands, and whether an uncertain word may be an
    option (`open`)."""

    def __init__(self, name):
        self.program = self.level = name
        self.operands, self.options, self.rows = [], [], []
        self.open, self.inner = False, None
        self.sure, self.ended, self.settled, self.pending, self.doubtful = True, False, False, False, False
        row, (head, dash, tail) = _row(name), name.partition("-")
        program = _row(head) if dash else None
        if row:
            self._descend(row, 0)
        elif program and "d" in program.traits:
            self.program = self.level = head
            self.rows.append(program)
            self._operand(0, tail)

    @staticmethod
    def parse(argv):
        if not argv or not argv[0].literal:
            return None
        line = _Line(argv[0].value.rsplit("/", 1)[-1])
        for at, word in enumerate(argv[1:], 1):
            line._word(at, word.value if word.literal else None)
        return line

    def last_has(self, trait):
        return bool(self.rows) and trait in self.rows[-1].traits

    def program_has(self, trait):
        return bool(self.rows) and trait in self.rows[0].traits

    def entry(self, name):
        rows = reversed(self.rows) if self.program_has("e") else self.rows[-1:]
        return next((entry for row in rows for entry in row.entries if name in entry[0]), None)

    def may_run_inside(self, program):
        """Whether this line runs another command that cannot be known for certain and may be this program."""
        if not self.last_has("r"):
            return False
        own = [] if self.inner is None else [one for one in self.operands if one.at >= self.inner]
        texts = [option.value for option in self.options]
        if own and (own[0].text or "").rsplit("/", 1)[-1] != program:
            texts += [one.text for one in own]
        mentioned = any(text is not None and program in text for text in texts)
        return mentioned or bool(own) and not own[0].certain

    def _word(self, at, text):
        if self.pending:
            self.pending = False
            self.options[-1].value, self.options[-1].unknown = text, text is None
            if text is None:
                self._unknown_word(at)
        elif text is None:
            self._unknown_word(at)
        elif self.ended or text == "-" or not text.startswith("-"):
            self._operand(at, text)
        else:
            self.doubtful = False
            if text == "--":
                self.ended = True
            else:
                self._option(at, text)

    def _unknown_word(self, at):
        self._push(at, None, False)
        self.open = self.open or not self.ended
        self.sure = self.doubtful = False
        if self.last_has("r") and self.inner is None:
            self.inner = at

    def _operand(self, at, text):
        certain = self.sure and not self.doubtful
        self.doubtful = False
        if not self.settled:
            row = _row(f"{self.level} {text}")
            if row:
                self._push(at, text, certain)
                self._descend(row, at)
                return
            if certain and len(self.rows) == 1 and self.program_has("u"):
                self._push(at, text, certain, alias=True)
                self.open = self.settled = True
                return
        self._push(at, text, certain)
        self.settled = self.settled or certain
        if self.last_has("r") and self.inner is None:
            self.inner = at
        self.ended = self.ended or self.last_has("r") or self.last_has("o")

    def _push(self, at, text, certain, alias=False):
        self.operands.append(_Operand(at, text, certain, alias))

    def _descend(self, row, at):
        if not row.same_as:
            self.level = row.path
            self.rows.append(row)
            return
        certain = all(operand.certain for operand in self.operands)
        program, *names = row.same_as.split(" ")
        self.program = self.level = program
        self.operands, self.rows = [], [row for row in [_row(program)] if row]
        for name in names:
            self.level = f"{self.level} {name}"
            self.rows += [row for row in [_row(self.level)] if row]
            self._push(at, name, certain)

    def _option(self, at, text):
        single = self.program_has("s")
        if not text.startswith("--") and not single:
            self._letters(at, text)
            return
        if single and text.startswith("--"):
            text = text[1:]
        name, equals, value = text.partition("=")
        value = value if equals else None
        entry = self.entry(name)
        if entry:
            self._known(at, entry, value)
        else:
            self._abbreviated(at, name, value)

    def _known(self, at, entry, value):
        self._give(at, entry[0][0], value, self.sure)
        self.pending = entry[1] == "one" and value is None

    def _abbreviated(self, at, name, value):
        entries = []
        if len(name) > 2 and self.program_has("a"):
            entries = [entry for entry in self.rows[-1].entries if any(known.startswith(name) for known in entry[0])]
        if not entries:
            self._give(at, name, value, self.sure)
            self.doubtful = value is None
        elif len(entries) == 1:
            self._known(at, entries[0], value)
        else:
            for entry in entries:
                self._give(at, entry[0][0], value, False)
            self.doubtful = value is None and any(entry[1] == "one" for entry in entries)

    def _letters(self, at, text):
        is_known, starts_unknown = True, False
        for index, letter in enumerate(text[1:], 1):
            entry, certain = self.entry(f"-{letter}"), self.sure and is_known
            if entry is None:
                starts_unknown = starts_unknown or index == 1
                self._give(at, f"-{letter}", None, certain, starts_unknown and len(text) > 2)
                is_known, self.doubtful = False, True
            elif entry[1] == "none":
                self._give(at, entry[0][0], None, certain, starts_unknown)
            else:
                rest = text[index + 1:] or None
                self._give(at, entry[0][0], rest, certain, starts_unknown)
                self.pending = is_known and rest is None and entry[1] == "one"
                break
        if starts_unknown and len(text) > 2:
            name, equals, value = text.partition("=")
            self._give(at, name, value if equals else None, self.sure)

    def _give(self, at, name, value, certain, letter=False):
        self.options.append(_Option(at, name, value, certain, letter))


def _of_operands(names, operands):
    first = operands[:len(names)]
    if len(first) == len(names) and all(one.certain and one.text == name for one, name in zip(first, names)):
        return YES
    # The numbers of names that the words so far may have matched.
    reached = {0}
    for operand in operands:
        if len(names) in reached:
            break
        if operand.alias or operand.text is None:
            reached = set(range(min(reached), len(names) + 1)) if reached else reached
        else:
            follow = {place + 1 for place in reached if names[place] == operand.text}
            reached = follow if operand.certain else follow | reached
    return MAYBE if len(names) in reached else NO


def _of_value(wanted, given):
    if wanted.value is not None:
        if given.unknown:
            return MAYBE
        if given.value != wanted.value:
            return NO
    elif given.value in _OFF:
        return MAYBE
    return _certainty(given.certain)


def _may_spell(wanted, option, line):
    """Whether an option that the table does not know may be a spelling of another unknown one."""
    if wanted.entry(option.name):
        return False
    is_long = option.name.startswith("--")
    letter = option.name.lstrip("-")[:1].lower()
    spelling = any(
        line.entry(given.name) is None
        and given.name.startswith("--") != is_long
        and given.name.lstrip("-")[:1].lower() == letter
        for given in line.options
    )
    letters, given = option.name[1:], {given.name for given in line.options}
    return spelling or not is_long and len(letters) > 1 and all(f"-{one}" in given for one in letters)


def _of_option(wanted, option, line):
    covers = [covered for row in wanted.rows for name, covered in row.covers if name == option.name]
    covered = [one for each in covers for one in each.split(",")]
    starts = tuple(start for start in covered if not start.startswith("-"))
    given = [_of_value(option, one) for one in line.options if one.name == option.name or one.name in covered]
    words = [_certainty(one.certain) for one in line.operands if one.text is not None and one.text.startswith(starts)]
    best = _most(given + words)
    if best == YES and option.name.startswith("--"):
        return MAYBE if any(one.name == f"--no-{option.name[2:]}" for one in line.options) else YES
    return MAYBE if best == NO and (line.open or _may_spell(wanted, option, line)) else best


def _of_line(wanted, line):
    names = [operand.text for operand in wanted.operands]
    options = [_of_option(wanted, option, line) for option in wanted.options if not option.letter]
    return _least([_of_operands(names, line.operands), *options])


class _Word:
    literal = True

    def __init__(self, value):
        self.value = value


@lru_cache(maxsize=None)
def _wanted(pattern):
    return _Line.parse([_Word(value) for value in pattern.split()])


def matches_words(pattern, argv):
    """Matches the words of one command: `"no"`, `"maybe"` or `"yes"`."""
    wanted = _wanted(pattern)
    if wanted is None:
        return NO
    path = pattern.split()[0]
    best, rest = NO, list(argv)
    for _ in range(_DEPTH_MAX):
        if not rest:
            return best
        line = _Line.parse(rest)
        if line is None:
            return _most([best, MAYBE])
        if path == rest[0].value if "/" in path else wanted.program == line.program:
            best = _most([best, _of_line(wanted, line)])
        if line.may_run_inside(wanted.program):
            best = _most([best, MAYBE])
        if line.inner is None:
            return best
        rest = rest[line.inner:]
    return _most([best, MAYBE])
