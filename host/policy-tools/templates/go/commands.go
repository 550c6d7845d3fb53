package portcullis

import "strings"

// Match says how surely something runs a command that a pattern describes.
type Match int

// No, Maybe and Yes are the matches, in this order.
const (
	No Match = iota
	Maybe
	Yes
)

const depthMax = 16

// CommandWord is a word of a command. It is literal if it is known before the script runs.
type CommandWord struct {
	Value   string
	Literal bool
}

// A row of the table of known programs.
type row struct{ path, traits, options string }

type entry struct {
	names []string
	// 0 for no value, '=' for one, '?' for one in the same word only.
	arity byte
}

type operand struct {
	text                  string
	known, certain, alias bool
	at                    int
}

type option struct {
	name, value                        string
	hasValue, unknown, certain, letter bool
}

// The words of a command: options by their first spelling, operands, and whether an uncertain word may be an option
// (open).
type line struct {
	program, level                                        string
	operands                                              []operand
	options                                               []option
	rows                                                  []row
	inner                                                 int
	open, runsInner, sure, ended, settled, pending, doubt bool
}

func lastComponent(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func rowOf(path string) (row, bool) {
	found, ok := rows[path]
	return row{path, found[0], found[1]}, ok
}

func (r row) has(trait byte) bool { return strings.IndexByte(r.traits, trait) >= 0 }

func (r row) entries() []entry {
	var found []entry
	for _, part := range strings.Fields(r.options) {
		if strings.Contains(part, ">") {
			continue
		}
		one := entry{}
		if last := part[len(part)-1]; last == '=' || last == '?' {
			one.arity = last
			part = part[:len(part)-1]
		}
		one.names = strings.Split(part, "|")
		found = append(found, one)
	}
	return found
}

// covered returns the options, and beginnings of operands, that count as an option.
func (r row) covered(name string) []string {
	var found []string
	for _, part := range strings.Fields(r.options) {
		if covering, list, ok := strings.Cut(part, ">"); ok && covering == name {
			found = append(found, strings.Split(list, ",")...)
		}
	}
	return found
}

func (e entry) has(name string) bool {
	for _, known := range e.names {
		if known == name {
			return true
		}
	}
	return false
}

func (e entry) startsWith(start string) bool {
	for _, known := range e.names {
		if strings.HasPrefix(known, start) {
			return true
		}
	}
	return false
}

func (l *line) lastHas(trait byte) bool { return len(l.rows) > 0 && l.rows[len(l.rows)-1].has(trait) }

func (l *line) programHas(trait byte) bool { return len(l.rows) > 0 && l.rows[0].has(trait) }

func (l *line) entry(name string) (entry, bool) {
	for index := len(l.rows) - 1; index >= 0; index-- {
		for _, one := range l.rows[index].entries() {
			if one.has(name) {
				return one, true
			}
		}
		if !l.programHas('e') {
			break
		}
	}
	return entry{}, false
}

func (l *line) push(at int, text string, known, certain, alias bool) {
	l.operands = append(l.operands, operand{text, known, certain, alias, at})
}

func (l *line) give(name, value string, hasValue, certain, letter bool) {
	l.options = append(l.options, option{name, value, hasValue, false, certain, letter})
}

func (l *line) beginInner(at int) {
	if l.lastHas('r') && !l.runsInner {
		l.runsInner, l.inner = true, at
	}
}

func (l *line) unknownWord(at int) {
	l.push(at, "", false, false, false)
	l.open = l.open || !l.ended
	l.sure, l.doubt = false, false
	l.beginInner(at)
}

// descend enters a row, or the one that it is the same as.
func (l *line) descend(entered row, at int) {
	if !entered.has('=') {
		l.level = entered.path
		l.rows = append(l.rows, entered)
		return
	}
	certain := true
	for _, one := range l.operands {
		certain = certain && one.certain
	}
	l.operands, l.rows = nil, nil
	for index, name := range strings.Split(entered.options, " ") {
		if index == 0 {
			l.program, l.level = name, name
		} else {
			l.level += " " + name
			l.push(at, name, true, certain, false)
		}
		if found, ok := rowOf(l.level); ok {
			l.rows = append(l.rows, found)
		}
	}
}

func (l *line) operand(at int, text string) {
	certain := l.sure && !l.doubt
	l.doubt = false
	if !l.settled {
		if found, ok := rowOf(l.level + " " + text); ok {
			l.push(at, text, true, certain, false)
			l.descend(found, at)
			return
		}
		if certain && len(l.rows) == 1 && l.programHas('u') {
			l.push(at, text, true, certain, true)
			l.open, l.settled = true, true
			return
		}
	}
	l.push(at, text, true, certain, false)
	l.settled = l.settled || certain
	l.beginInner(at)
	l.ended = l.ended || l.lastHas('r') || l.lastHas('o')
}

func (l *line) knownOption(found entry, value string, hasValue bool) {
	l.give(found.names[0], value, hasValue, l.sure, false)
	l.pending = found.arity == '=' && !hasValue
}

func (l *line) abbreviated(name, value string, hasValue bool) {
	var found []entry
	if len(name) > 2 && l.programHas('a') {
		for _, one := range l.rows[len(l.rows)-1].entries() {
			if one.startsWith(name) {
				found = append(found, one)
			}
		}
	}
	switch len(found) {
	case 0:
		l.give(name, value, hasValue, l.sure, false)
		l.doubt = !hasValue
	case 1:
		l.knownOption(found[0], value, hasValue)
	default:
		for _, one := range found {
			l.give(one.names[0], value, hasValue, false, false)
			l.doubt = l.doubt || !hasValue && one.arity == '='
		}
	}
}

func (l *line) letters(text string) {
	isKnown, startsUnknown := true, false
	for index := 1; index < len(text); index++ {
		name := "-" + text[index:index+1]
		certain := l.sure && isKnown
		found, ok := l.entry(name)
		if !ok {
			startsUnknown = startsUnknown || index == 1
			l.give(name, "", false, certain, startsUnknown && len(text) > 2)
			isKnown, l.doubt = false, true
		} else if found.arity == 0 {
			l.give(found.names[0], "", false, certain, startsUnknown)
		} else {
			rest := text[index+1:]
			l.give(found.names[0], rest, rest != "", certain, startsUnknown)
			l.pending = isKnown && rest == "" && found.arity == '='
			break
		}
	}
	if startsUnknown && len(text) > 2 {
		name, value, hasValue := strings.Cut(text, "=")
		l.give(name, value, hasValue, l.sure, false)
	}
}

func (l *line) option(text string) {
	single, isLong := l.programHas('s'), strings.HasPrefix(text, "--")
	if !isLong && !single {
		l.letters(text)
		return
	}
	if single && isLong {
		text = text[1:]
	}
	name, value, hasValue := strings.Cut(text, "=")
	if found, ok := l.entry(name); ok {
		l.knownOption(found, value, hasValue)
	} else {
		l.abbreviated(name, value, hasValue)
	}
}

func (l *line) word(at int, word CommandWord) {
	switch {
	case l.pending:
		l.pending = false
		last := &l.options[len(l.options)-1]
		last.value, last.hasValue, last.unknown = word.Value, word.Literal, !word.Literal
		if !word.Literal {
			l.unknownWord(at)
		}
	case !word.Literal:
		l.unknownWord(at)
	case l.ended || len(word.Value) < 2 || word.Value[0] != '-':
		l.operand(at, word.Value)
	case word.Value == "--":
		l.ended, l.doubt = true, false
	default:
		l.doubt = false
		l.option(word.Value)
	}
}

// parse parses a command; false for one without a certain program.
func parse(words []CommandWord) (*line, bool) {
	if len(words) == 0 || !words[0].Literal {
		return nil, false
	}
	name := lastComponent(words[0].Value)
	l := &line{program: name, level: name, sure: true}
	head, tail, dashed := strings.Cut(name, "-")
	if found, ok := rowOf(name); ok {
		l.descend(found, 0)
	} else if program, ok := rowOf(head); ok && dashed && program.has('d') {
		l.program, l.level = head, head
		l.rows = append(l.rows, program)
		l.operand(0, tail)
	}
	for index, word := range words[1:] {
		l.word(index+1, word)
	}
	return l, true
}

// mayRunInside says whether a line runs another command that cannot be known for certain and may be this program.
func (l *line) mayRunInside(program string) bool {
	if !l.lastHas('r') {
		return false
	}
	for _, one := range l.options {
		if one.hasValue && strings.Contains(one.value, program) {
			return true
		}
	}
	isFirst := true
	for _, one := range l.operands {
		if !l.runsInner || one.at < l.inner {
			continue
		}
		if isFirst && (!one.certain || lastComponent(one.text) == program) {
			return !one.certain
		}
		if one.known && strings.Contains(one.text, program) {
			return true
		}
		isFirst = false
	}
	return false
}

func certainty(certain bool) Match {
	if certain {
		return Yes
	}
	return Maybe
}

func ofOperands(names, operands []operand) Match {
	matched := 0
	for matched < len(names) && matched < len(operands) && operands[matched].certain &&
		operands[matched].text == names[matched].text {
		matched++
	}
	if matched == len(names) {
		return Yes
	}
	// The numbers of names that the words so far may have matched.
	reached := make([]bool, len(names)+1)
	reached[0] = true
	for _, one := range operands {
		if reached[len(names)] {
			break
		}
		isAny, before := one.alias || !one.known, false
		for place, here := range reached {
			follows := before && (isAny || one.text == names[place-1].text)
			reached[place] = here && (isAny || !one.certain) || follows
			before = here || isAny && before
		}
	}
	if reached[len(names)] {
		return Maybe
	}
	return No
}

func ofValue(wanted, given option) Match {
	if wanted.hasValue {
		if given.unknown {
			return Maybe
		}
		if !given.hasValue || given.value != wanted.value {
			return No
		}
	} else if given.hasValue {
		switch given.value {
		case "false", "no", "none", "off", "0":
			return Maybe
		}
	}
	return certainty(given.certain)
}

// maySpell says whether an option that the table does not know may be a spelling of another unknown one.
func maySpell(wanted *line, one option, l *line) bool {
	if _, ok := wanted.entry(one.name); ok {
		return false
	}
	isLong := func(name string) bool { return strings.HasPrefix(name, "--") }
	letter := func(name string) string { return strings.ToLower((strings.TrimLeft(name, "-") + " ")[:1]) }
	given := map[string]bool{}
	for _, other := range l.options {
		given[other.name] = true
		_, known := l.entry(other.name)
		if !known && isLong(other.name) != isLong(one.name) && letter(other.name) == letter(one.name) {
			return true
		}
	}
	if isLong(one.name) || len(one.name) < 3 {
		return false
	}
	for _, letter := range one.name[1:] {
		if !given["-"+string(letter)] {
			return false
		}
	}
	return true
}

func ofOption(wanted *line, one option, l *line) Match {
	best := No
	names := []string{one.name}
	for _, r := range wanted.rows {
		names = append(names, r.covered(one.name)...)
	}
	for _, name := range names {
		for _, given := range l.options {
			if given.name == name {
				best = max(best, ofValue(one, given))
			}
		}
		for _, word := range l.operands {
			if name[0] != '-' && word.known && strings.HasPrefix(word.text, name) {
				best = max(best, certainty(word.certain))
			}
		}
	}
	if best == Yes && strings.HasPrefix(one.name, "--") {
		for _, given := range l.options {
			if given.name == "--no-"+one.name[2:] {
				return Maybe
			}
		}
	}
	if best == No && (l.open || maySpell(wanted, one, l)) {
		return Maybe
	}
	return best
}

func ofLine(wanted, l *line) Match {
	worst := ofOperands(wanted.operands, l.operands)
	for _, one := range wanted.options {
		if !one.letter {
			worst = min(worst, ofOption(wanted, one, l))
		}
	}
	return worst
}

// MatchesWords matches the words of one command.
func MatchesWords(pattern string, words []CommandWord) Match {
	var own []CommandWord
	for _, word := range strings.Fields(pattern) {
		own = append(own, CommandWord{word, true})
	}
	wanted, ok := parse(own)
	if !ok {
		return No
	}
	best := No
	for depth := 0; depth < depthMax; depth++ {
		if len(words) == 0 {
			return best
		}
		l, ok := parse(words)
		if !ok {
			return max(best, Maybe)
		}
		isProgram := wanted.program == l.program
		if strings.Contains(own[0].Value, "/") {
			isProgram = own[0].Value == words[0].Value
		}
		if isProgram {
			best = max(best, ofLine(wanted, l))
		}
		if l.mayRunInside(wanted.program) {
			best = max(best, Maybe)
		}
		if !l.runsInner {
			return best
		}
		words = words[l.inner:]
	}
	return max(best, Maybe)
}
