import fc from "fast-check";
import { expect, test } from "vitest";
import { digits, ticks } from "./ticks";

test("ticks are round", () => {
  expect(ticks(0, 1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(ticks(1.9, 7.02)).toEqual([2, 4, 6]);
  expect(ticks(0, 600)).toEqual([0, 200, 400, 600]);
  expect(ticks(-0.3, 0.3)).toEqual([-0.2, 0, 0.2]);
  expect(ticks(3, 3)).toEqual([3]);
});

test("ticks lie within the range, evenly, and are not too many", () => {
  const number = fc.double({ min: -1e6, max: 1e6, noNaN: true });
  fc.assert(
    fc.property(number, fc.double({ min: 1e-3, max: 1e6, noNaN: true }), (low, width) => {
      const found = ticks(low, low + width);
      const slack = 1e-6 * (Math.abs(low) + width);
      expect(found.length).toBeGreaterThan(0);
      expect(found.length).toBeLessThanOrEqual(7);
      expect(found[0]).toBeGreaterThanOrEqual(low - slack);
      expect(found.at(-1)).toBeLessThanOrEqual(low + width + slack);
    }),
  );
});

test("as many digits are written as tell ticks apart", () => {
  expect(digits([0, 200])).toBe(0);
  expect(digits([0, 0.2])).toBe(1);
  expect(digits([0, 0.05])).toBe(2);
  expect(digits([0, 1])).toBe(0);
});
