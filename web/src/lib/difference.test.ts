import fc from "fast-check";
import { expect, test } from "vitest";

import { difference, words } from "./difference";

const kept = (row: string[], other: string[]) =>
  difference(row, other)
    .filter((part) => part.kept)
    .map((part) => part.text);

test("what was changed is told from what stayed", () => {
  const found = difference(["Zwei", " ", "Hunde", " ", "laufen"], ["Zwei", " ", "Katzen", " ", "laufen"]);
  expect(found.filter((part) => !part.kept)).toEqual([{ text: "Hunde", kept: false }]);
});

test("both sides keep the same, and a text keeps all of itself", () => {
  const row = fc.array(fc.constantFrom<string>("a", "b", "c"), { maxLength: 9 });
  fc.assert(
    fc.property(row, row, (one, other) => {
      expect(kept(one, other).length).toBe(kept(other, one).length);
      expect(kept(one, one)).toEqual(one);
    }),
  );
});

test("what is kept is in the other text, in this order", () => {
  const row = fc.array(fc.constantFrom<string>("a", "b", "c"), { maxLength: 9 });
  fc.assert(
    fc.property(row, row, (one, other) => {
      let place = 0;
      for (const text of kept(one, other)) {
        place = other.indexOf(text, place) + 1;
        expect(place).toBeGreaterThan(0);
      }
    }),
  );
});

test("a text is cut into words without losing anything", () => {
  expect(words("Ein Hund läuft.", "de")).toEqual(["Ein", " ", "Hund", " ", "läuft", "."]);
  expect(words("两只狗在跑。", "zh").join("")).toBe("两只狗在跑。");
});
