import { expect, test } from "vitest";
import tour from "./tour.json";
import { stops } from "./tour";
import type { Look } from "../../lib/types";

const block = (name: string) => ({ name, heads: 2, queries: "", keys: "" });
const look = (blocks: string[], lines: string[], more: object = {}) =>
  ({
    blocks: blocks.map(block),
    lines: Object.fromEntries(
      lines.map((line) => [line, { read: { ids: [2, 9, 7, 4, 3], labels: ["<bos>", "▁a", "▁word", ".", "<eos>"] } }]),
    ),
    model: { stacks: blocks.slice(0, 1).map((block) => ({ name: block.split(".")[0] })), trained: true },
    lens: {},
    search: null,
    ...more,
  }) as unknown as Look;

const TRANSLATOR = look(
  ["enc.0.self", "enc.1.self", "dec.0.self", "dec.0.cross", "dec.1.self", "dec.1.cross"],
  ["src", "tgt"],
  {
    search: {},
  },
);
const names = (seen: Look, live = true) => stops(seen, live, null).map(({ name }) => name);

test("a translator has every stop", () => {
  expect(names(TRANSLATOR)).toEqual([
    "embedding",
    "position",
    ...[1, 2, 3, 4, 5, 6, 7].map((step) => `attention.${step}`),
    "heads",
    "stream",
    "feed-forward",
    "cross",
    "masked",
    "output",
    "search",
    "training",
  ]);
});

test("what a model does not have is left out", () => {
  const gpt = names(look(["dec.0.self", "dec.1.self"], ["tgt"]));
  expect(gpt).not.toContain("cross");
  expect(gpt).not.toContain("search");
  expect(gpt).toContain("masked");
  const bert = names(look(["enc.0.self"], ["src"], { lens: null }));
  for (const name of ["cross", "masked", "output", "search"]) expect(bert).not.toContain(name);
});

test("a model without its run has no curves to stop at", () => {
  expect(names({ ...TRANSLATOR, model: { ...TRANSLATOR.model, trained: false } })).not.toContain("training");
});

test("the formula is walked where a mask hides something, in the middle of the line", () => {
  const formula = stops(TRANSLATOR, true, null).filter(({ page }) => page === "formula");
  expect(new Set(formula.map(({ block, query }) => `${block} ${query}`))).toEqual(new Set(["dec.0.self 2"]));
});

test("the tour begins with a whole word", () => {
  expect(stops(TRANSLATOR, true, null)[0].query).toBe(2);
});

test("stops lead to blocks that are there", () => {
  const found = stops(TRANSLATOR, true, null);
  const blocks = [...TRANSLATOR.blocks.map(({ name }) => name), "enc.0.ffn", undefined];
  for (const { block } of found) expect(blocks).toContain(block);
  expect(found.find(({ name }) => name === "cross")!.block).toBe("dec.1.cross");
  expect(found.find(({ name }) => name === "masked")!.block).toBe("dec.0.self");
});

test("a file shows the formula of the head that it holds, and nothing that needs a server", () => {
  const found = stops(TRANSLATOR, false, { block: "dec.1.cross", number: 1 });
  const formula = found.filter(({ page }) => page === "formula");
  expect(formula.map(({ block, head }) => [block, head])).toEqual(Array(7).fill(["dec.1.cross", 1]));
  for (const name of ["embedding", "position", "feed-forward", "training"])
    expect(found.map((stop) => stop.name)).not.toContain(name);
});

test("a model without attention sublayers has no stop on them", () => {
  const found = names(look([], ["src", "tgt"], { search: {} }));
  for (const name of ["feed-forward", "cross", "masked"]) expect(found).not.toContain(name);
  expect(found).toContain("search");
});

test("every stop has a title and a caption in both languages", () => {
  for (const texts of [tour.en, tour.zh] as Record<string, string>[]) {
    for (const name of names(TRANSLATOR)) {
      expect(texts[`tour.${name}`]).toBeTruthy();
      expect(texts[`tour.${name}.title`]).toBeTruthy();
    }
  }
});
