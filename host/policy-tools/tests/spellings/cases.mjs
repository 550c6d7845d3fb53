// Runs the shared test cases: `node cases.mjs FILE`.
import { readFileSync } from "node:fs";

import { matches } from "./commands.js";

const request = (item) => {
  const commands = item.commands.map((words) => ({ argv: words.map(([value, literal]) => ({ value, literal })) }));
  const script = { commands, features: { dynamic: item.hides } };
  return { action: { tag: "command", val: { parsed: { tag: "ok", val: script } } } };
};

const cases = JSON.parse(readFileSync(process.argv[2]));
for (const item of cases) {
  const found = matches(request(item), item.pattern);
  if (found !== item.expect) console.log(`wrong: \`${item.pattern}\` for \`${item.line}\`: ${found}`);
}
console.log(`${cases.length} cases`);
