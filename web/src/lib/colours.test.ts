import fc from "fast-check";
import { expect, test } from "vitest";
import { amounts, css, HEADS, isBright, signed, type Palette } from "./colours";

const channels = (rgba: number) => [rgba & 255, (rgba >> 8) & 255, (rgba >> 16) & 255, rgba >>> 24];

/** Relative luminance, as WCAG 2 defines it. */
function luminance(rgb: number[]): number {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

test("a palette has 256 opaque colours", () => {
  for (const palette of [amounts, signed]) {
    expect(palette).toHaveLength(256);
    expect(palette.every((rgba) => rgba >>> 24 === 255)).toBe(true);
  }
});

test("cividis begins in dark blue, ends in yellow, and grows brighter all the way", () => {
  expect(channels(amounts[0])).toEqual([0, 34, 78, 255]);
  expect(channels(amounts[255])).toEqual([253, 231, 55, 255]);
  const light = Array.from(amounts, (rgba) => luminance(channels(rgba).slice(0, 3)));
  light.slice(1).forEach((next, i) => expect(next).toBeGreaterThan(light[i] - 0.002));
  expect(light.filter((_, i) => i % 16 === 0)).toEqual(light.filter((_, i) => i % 16 === 0).sort((a, b) => a - b));
});

test("PuOr is orange below zero, purple above it and brightest between", () => {
  const [low, zero, high] = [signed[64], signed[128], signed[191]].map(channels);
  expect(low[0]).toBeGreaterThan(low[2]);
  expect(high[2]).toBeGreaterThan(high[1]);
  expect(Math.min(...zero.slice(0, 3))).toBeGreaterThan(240);
});

test("numbers outside a palette get its ends", () => {
  const outside = fc.double({ min: -1e6, max: 1e6, noNaN: true });
  fc.assert(
    fc.property(outside, (share) => {
      const inside = Math.min(1, Math.max(0, share));
      for (const palette of [amounts, signed]) {
        expect(css(palette, share)).toBe(css(palette, inside));
        expect(isBright(palette, share)).toBe(isBright(palette, inside));
      }
    }),
  );
});

test("CSS gets the colour that pixels get", () => {
  fc.assert(
    fc.property(fc.nat(255), (place) => {
      expect(css(signed, place / 255)).toBe(`rgb(${channels(signed[place]).slice(0, 3).join(" ")})`);
    }),
  );
});

test("text on any colour can be read", () => {
  const contrast = (a: number, b: number) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const on = (palette: Palette, place: number) =>
    contrast(luminance(channels(palette[place])), isBright(palette, place / 255) ? 0 : 1);
  for (const palette of [amounts, signed]) {
    for (let place = 0; place < 256; place++) expect(on(palette, place)).toBeGreaterThan(3);
  }
});

test("no two heads share a colour", () => {
  expect(new Set(HEADS).size).toBe(8);
  HEADS.forEach((colour) => expect(colour).toMatch(/^#[0-9a-f]{6}$/));
});
