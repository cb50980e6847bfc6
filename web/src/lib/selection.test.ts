import fc from "fast-check";
import { expect, test } from "vitest";
import { PAGES, selection } from "./selection.svelte";

const state = () => JSON.parse(JSON.stringify({ ...fields() }));
const fields = () => ({
  page: selection.page,
  text: selection.text,
  target: selection.target,
  block: selection.block,
  head: selection.head,
  query: selection.query,
  words: selection.words,
  lines: selection.lines,
  step: selection.step,
  node: selection.node,
  settings: selection.settings,
  off: selection.off,
  even: selection.even,
  measure: selection.measure,
  snapshot: selection.snapshot,
  tour: selection.tour,
});

const place = fc.option(fc.integer({ min: 0, max: 2 ** 40 }));

test("an address shows again whatever it was made of", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...PAGES),
      fc.string({ unit: "binary", minLength: 1 }),
      fc.string({ unit: "binary" }),
      fc.record({ query: place, node: place, snapshot: place, tour: place }),
      fc.record({ words: fc.boolean(), lines: fc.boolean(), even: fc.boolean() }),
      fc.record({ head: fc.nat(99), step: fc.integer({ min: 1, max: 999 }), block: fc.constant("dec.1.cross") }),
      fc.record({
        reference: fc.string(),
        prefix: fc.string(),
        beam: place,
        alpha: fc.constantFrom(null, 0, 0.6, 0.1234567, 1e-7, 10),
      }),
      (page, text, target, places, flags, numbers, settings) => {
        Object.assign(selection, { page, text, target, settings, ...places, ...flags, ...numbers });
        const before = state();
        const hash = selection.hash();
        selection.read("#/tour");
        selection.read(hash);
        expect(state()).toEqual(before);
      },
    ),
  );
});

test("an address that somebody broke shows the first page", () => {
  selection.read("#/nowhere?query=-1&head=1e9&alpha=x&step=%F0%9F");
  expect([selection.page, selection.query, selection.head, selection.step]).toEqual(["answer", null, 0, 1]);
  expect(selection.settings.alpha).toBeNull();
});
