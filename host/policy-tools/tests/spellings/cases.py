"""Runs the shared test cases: `python3 cases.py FILE`."""

import json
import sys
from collections import namedtuple

from portcullis_commands import MAYBE, NO, YES, matches_words

Word = namedtuple("Word", "value literal")

with open(sys.argv[1]) as file:
    cases = json.load(file)
for case in cases:
    found = {matches_words(case["pattern"], [Word(*word) for word in words]) for words in case["commands"]}
    found |= {MAYBE} if case["hides"] else {NO}
    best = max(found, key=(NO, MAYBE, YES).index)
    if best != case["expect"]:
        print(f"wrong: `{case['pattern']}` for `{case['line']}`: {best}")
print(f"{len(cases)} cases")
