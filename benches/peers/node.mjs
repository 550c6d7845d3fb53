// The rules in JavaScript. For each line `{"path", "write", "calls"}` it decides so many times and prints the answer.
import { createInterface } from "node:readline";

const rules = JSON.parse(process.argv[2]);
const within = (path, place) => path === place || path.startsWith(`${place}/`);
const allows = ({ path, write }) =>
  (!write && rules.read.some((place) => within(path, place))) || rules.write.some((place) => within(path, place));

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  let answer = false;
  for (let left = question.calls; left > 0; left -= 1) {
    // Each question is an object of its own, as it would be when a tool is called.
    answer = allows({ path: question.path, write: question.write });
  }
  console.log(JSON.stringify(answer));
}
