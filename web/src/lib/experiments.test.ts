import { expect, test } from "vitest";

import { verdict, type Interval, type Summary } from "./experiments";

const summary = (count: number, size: Interval): Summary => ({ count, shift: size, size, sided: count });

test("pairs are told from controls only where their intervals lie apart", () => {
  expect(verdict({ pair: summary(5, [3, 2, 4]), control: summary(5, [1, 0.5, 1.9]) })).toBe("moved");
  expect(verdict({ pair: summary(5, [3, 2, 4]), control: summary(5, [1, 0.5, 2.1]) })).toBe("still");
  expect(verdict({ pair: summary(5, [0.1, 0.05, 0.2]), control: summary(5, [1, 0.5, 2.1]) })).toBe("still");
});

test("nothing is said without controls, or about so few lines that they have no interval", () => {
  expect(verdict({ pair: summary(50, [3, 2, 4]) })).toBe("controls");
  expect(verdict({ pair: summary(2, [3, null, null]), control: summary(5, [1, 0.5, 1.9]) })).toBe("lines");
});
