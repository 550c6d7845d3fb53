import { equal, deepEqual } from "node:assert/strict";
import { test } from "node:test";
import type { ChangedPoint } from "../src/protocol.ts";
import { groupsOf, leftBehind, Turns } from "../src/turns.ts";

const turn = (name: string, id: string): ChangedPoint =>
  ({ name, kind: "turn", id, label: `says ${id}`, undone: false, changed: 0, names: [] });
const call = (name: string, more: Partial<ChangedPoint> = {}): ChangedPoint =>
  ({ name, kind: "call", label: name, undone: false, changed: 1, names: [name], ...more });

test("calls belong to the turn before them, and only turns with changes in force are listed", () => {
  const points = [
    call("c1"), turn("t1", "a"), call("c2"), call("c3"), turn("t2", "b"), turn("t3", "c"), call("c4", { undone: true }),
    turn("t4", "d"), call("c5", { changed: 0 }),
  ];
  const groups = groupsOf({ points, redoable: false });
  deepEqual(groups.map(({ name, changed, names }) => [name, changed, names]), [["c1", 1, ["c1"]], ["t1", 2, ["c2", "c3"]]]);
});

test("only turns after the last one on the branch are left behind", () => {
  const points = ["a", "b", "c"].flatMap((id, number) => [turn(`t${number}`, id), call(`c${number}`)]);
  const groups = groupsOf({ points, redoable: false });
  const left = (...ids: string[]) => leftBehind(groups, new Set(ids)).map(({ id }) => id);
  deepEqual(left("a", "b", "c"), []);
  deepEqual(left("a", "b"), ["c"]);
  deepEqual(left("a"), ["b", "c"]);
  deepEqual(left("b", "c"), []);
  deepEqual(left("a", "c"), []);
  deepEqual(left(), ["a", "b", "c"]);
});

test("a command of the user is not a reason to go back, but goes along", () => {
  const own = [turn("t1", "a"), call("c1"), turn("t2", "user-1"), call("c2")];
  const groups = groupsOf({ points: own, redoable: false });
  deepEqual(leftBehind(groups, new Set(["a"])), []);
  deepEqual(leftBehind(groups, new Set()).map(({ name }) => name), ["t1", "t2"]);
});

test("a turn is named once for each host, by the last message of the user on the branch", async () => {
  const said: unknown[] = [];
  const hostOf = () => ({ call: (...words: unknown[]) => Promise.resolve(said.push(words)) });
  let host = hostOf();
  const session = { host: () => host } as never;
  const user = (id: string, content: unknown) => ({ type: "message", id, message: { role: "user", content } });
  const entries = [user("1", "first"), { type: "message", id: "2", message: { role: "assistant", content: [] } }];
  const manager = { getBranch: () => entries } as never;
  const turns = new Turns();
  await turns.begin(session, manager);
  await turns.begin(session, manager);
  entries.push(user("3", [{ type: "text", text: "a\nb\0c" }]));
  await turns.begin(session, manager);
  host = hostOf();
  await turns.begin(session, manager);
  deepEqual(said.map((words) => (words as unknown[])[1]),
    [{ id: "1", label: "first" }, { id: "3", label: "a b c" }, { id: "3", label: "a b c" }]);
  equal(said.length, 3);
});
