// How the numbers of a formula are written.

import { hides } from "./formula";
import { n } from "../../lib/language.svelte";

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
