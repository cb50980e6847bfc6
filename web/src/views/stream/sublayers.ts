// The parts of a stack and of a logit: their order and their sums.

import type { Attribution, Look, Part } from "../../lib/types";

/** The sublayers of a stack, in the order in which they add to the stream. */
export function sublayersOf(look: Pick<Look, "stream">, stack: string): string[] {
  return Object.keys(look.stream).filter((name) => name.startsWith(`${stack}.`));
}

/** How many times longer what a sublayer adds is than what it is added to. */
export function growth(look: Pick<Look, "stream">, sublayer: string): number[] {
  const { before, added } = look.stream[sublayer];
  return added.map((length, place) => length / before[place]);
}

/** What each source adds to a logit, all of its parts together. */
export function bySource(parts: Part[]): { source: string; value: number }[] {
  const sums = new Map<string, number>();
  for (const { source, value } of parts) sums.set(source, (sums.get(source) ?? 0) + value);
  return [...sums].map(([source, value]) => ({ source, value }));
}

/** What makes one token's logit larger than that of another at the same place. */
export function minus(one: Attribution, other: Attribution): Attribution {
  return {
    ...one,
    logit: one.logit - other.logit,
    parts: one.parts.map((part, i) => ({ ...part, value: part.value - other.parts[i].value })),
    difference: one.difference - other.difference,
  };
}

/** The strongest neurons of a row, with their numbers from 0; and the share of those that are exactly 0. */
export function neurons(hidden: Float32Array, count: number): { strongest: number[]; silent: number } {
  const strongest = Array.from(hidden.keys()).sort((a, b) => Math.abs(hidden[b]) - Math.abs(hidden[a]));
  const silent = hidden.reduce((zeros, value) => zeros + Number(value === 0), 0) / hidden.length;
  return { strongest: strongest.slice(0, count), silent };
}
