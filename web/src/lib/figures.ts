// How numbers of all sizes are written.

import { n } from "./language.svelte";

/** A mask stands for minus infinity (heedful.nn.attention.HIDDEN), even where a position has added to it. */
export function hides(bias: number): boolean {
  return bias < -1e8;
}

/** Rounded, but what is not zero never looks like it. */
export function figure(value: number, digits = 3): string {
  if (hides(value)) return "−∞";
  if (value === 0 || Math.abs(value) < 0.5 * 10 ** -digits) return power(value);
  return n(value, digits);
}

/** A tiny number: 3.1 × 10⁻⁷. */
export function power(value: number): string {
  if (value === 0) return "0";
  const [first, exponent] = value.toExponential(1).split("e");
  const raised = [...exponent.replace("+", "")].map((sign) => RAISED[sign]).join("");
  return `${n(Number(first), 1)} × 10${raised}`;
}

const RAISED: Record<string, string> = Object.fromEntries(
  [..."-0123456789"].map((sign, i) => [sign, [..."⁻⁰¹²³⁴⁵⁶⁷⁸⁹"][i]]),
);
