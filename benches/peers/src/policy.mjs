// Answers requests, a line each, by the rules in its first argument. `race N` answers those of the second one N times
// in turn, inside.

import { createInterface } from "node:readline";

const [rules, requests] = process.argv.slice(2).map((text) => JSON.parse(text));

function allows({ action, path, host, port }) {
	switch (action) {
		case "read":
			return rules.read.some((below) => `${path}/`.startsWith(below));
		case "change":
			return rules.write.some((below) => `${path}/`.startsWith(below));
		case "connect":
			return rules.domains.some((rule) => rule.port === port && host.endsWith(rule.below));
		default:
			throw new Error(`unknown action ${action}`);
	}
}

// What comes of the race, so that it is not taken for nothing.
let allowed = 0;

for await (const line of createInterface({ input: process.stdin })) {
	if (line.startsWith("race ")) {
		const calls = Number(line.slice("race ".length));
		for (let call = 0; call < calls; call++) {
			allowed += allows(requests[call % requests.length]) ? 1 : 0;
		}
		process.stdout.write(allowed >= 0 ? "done\n" : "\n");
	} else {
		process.stdout.write(`${allows(JSON.parse(line))}\n`);
	}
}
