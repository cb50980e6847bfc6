import fc from "fast-check";
import { expect, test, vi } from "vitest";

vi.stubGlobal("navigator", { language: "en" });
const { figure, hides, power } = await import("./figures");
const { n } = await import("./language.svelte");

test("a figure is rounded and has a real minus", () => {
  expect([3.41449, -0.5, 12].map((value) => figure(value))).toEqual(["3.414", "−0.500", "12.000"]);
  expect(figure(1 / 3, 4)).toBe("0.3333");
});

test("what is rounded to zero has no sign", () => {
  expect([-0, -0.0004, -0.0006].map((value) => n(value))).toEqual(["0.000", "0.000", "−0.001"]);
});

test("what a mask hides is minus infinity", () => {
  expect([-1e9, -1e9 + 3.5].map((value) => figure(value))).toEqual(["−∞", "−∞"]);
});

test("only zero looks like zero", () => {
  expect(figure(0)).toBe("0");
  fc.assert(
    fc.property(fc.double({ min: -1e4, max: 1e4, noNaN: true }), (value) => {
      expect(/[1-9]/.test(figure(value).split(" ")[0])).toBe(value !== 0);
    }),
  );
});

test("a tiny number is written with its power of ten", () => {
  expect([3.12e-7, -4e-12, 9.96e-8, 0].map(power)).toEqual(["3.1 × 10⁻⁷", "−4.0 × 10⁻¹²", "1.0 × 10⁻⁷", "0"]);
});

test("only a mask hides, with or without the term of a position", () => {
  expect([-1e9, -1e9 + 40, -1e9 - 40].every(hides)).toBe(true);
  expect([0, -3.5, 7, -1e5].some(hides)).toBe(false);
});
