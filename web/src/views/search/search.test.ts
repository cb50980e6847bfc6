import { describe, expect, it } from "vitest";
import { spelled } from "../../lib/spelling";
import { difference, Log } from "./search";
import { logOf } from "./search.toy";
import { arranged, breadth, columns, drawn, short } from "./tree";
import type { Option } from "../../lib/types";

const said = (log: Log): Option[] =>
  log.found.map(({ node, score }) => ({
    text: log.text(node),
    probability: null,
    score,
    pieces: log.path(node).map((at) => log.search.piece[at]),
    log_probs: [],
    complete: true,
  }));

describe.each([1, 2, 3, 5])("a search with a beam of %i", (beam) => {
  const searches = [1, 2, 3, 4, 5, 6, 7].map((seed) => logOf(seed, beam));

  it("is found again from its log alone", () => {
    for (const { search, found } of searches) {
      const log = new Log(search);
      expect(log.found.map(({ node }) => node)).toEqual(found);
      expect(difference(log, said(log))).toBe(0);
      for (const { node, score } of log.found) expect(score).toBeCloseTo(search.score[node]!, 12);
      expect(log.furthest(log.best(log.roots)!)).toBe(found[0]);
    }
  });

  it("is drawn in rows that nobody shares, in the order of the parents", () => {
    for (const { search } of searches) {
      const log = new Log(search);
      const { row, rows } = arranged(log);
      log.steps.forEach((nodes, step) => {
        expect(nodes.map((node) => row.get(node)).sort((a, b) => a! - b!)).toEqual([...nodes.keys()]);
        expect(rows[step]).toBe(nodes.length);
        const living = nodes.filter((node) => log.lives(node)).sort((a, b) => row.get(a)! - row.get(b)!);
        const parents = living.map((node) => row.get(search.parent[node] ?? -1) ?? 0);
        expect(parents).toEqual([...parents].sort((a, b) => a - b));
      });
      expect(log.path(log.found[0].node).map((node) => row.get(node))).toEqual(
        log.path(log.found[0].node).map(() => 0),
      );
    }
  });

  it("shows what leads to its outputs, however little room there is", () => {
    for (const { search } of searches) {
      const log = new Log(search);
      const shown = { step: 2, dead: false, chosen: null, most: 1000, deepest: 9 };
      const some = drawn(log, arranged(log), shown);
      expect(some.filter((node) => log.lives(node))).toEqual([...search.step.keys()].filter((at) => log.lives(at)));
      expect(some.every((node) => log.lives(node) || search.step[node] === 2)).toBe(true);
      const few = drawn(log, arranged(log), { ...shown, most: log.leadsTo.size });
      expect(few).toEqual([...log.leadsTo.keys()].sort((a, b) => a - b));
    }
  });
});

it.each([
  ["average", (length: number) => length ** 2],
  ["average_text", (length: number) => Math.max(1, length - 1) ** 2],
  ["gnmt", (length: number) => ((5 + length) / 6) ** 2],
])("scores by the length penalty %s", (penalty, of) => {
  const { search } = logOf(1, 3);
  const { found } = new Log({ ...search, penalty, alpha: 2 });
  expect(found.length).toBe(3);
  for (const { node, score } of found) expect(score).toBeCloseTo(search.total[node]! / of(search.step[node]), 12);
});

it("notices outputs that the log does not lead to", () => {
  const log = new Log(logOf(1, 3).search);
  const [first, ...rest] = said(log);
  expect(difference(log, [{ ...first, score: first.score! + 0.5 }, ...rest])).toBeCloseTo(0.5, 12);
  expect(difference(log, [{ ...first, pieces: ["▁other"] }, ...rest])).toBeNull();
  expect(difference(log, rest)).toBeNull();
});

it("spells pieces", () => {
  expect(spelled(["▁Der", "▁al", "te", "."])).toBe("Der alte.");
  expect(spelled(["▁", "<0xE5>", "<0x8C>", "<0x97>", "京", "▁b"])).toBe("北京 b");
  expect(spelled([])).toBe("");
});

it("leaves room for wide signs", () => {
  expect(breadth("▁das")).toBe(4);
  expect(breadth("河岸")).toBe(4);
  expect(short("河岸边上", 3)).toBe("河岸…");
  expect(columns([10, 20], 5)).toEqual([0, 15, 40]);
});
