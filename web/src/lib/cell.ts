// A layer and a token of one stack, in terms of what all views share: a block and one of its queries.

import { selection } from "./selection.svelte";
import type { Look, Model } from "./types";

export type Stack = Model["stacks"][number];

export interface Cell {
  layer: number;
  place: number;
}

/** Where to look first: at the first gap of a text with gaps, else at its first token. */
export function firstPlace(look: Pick<Look, "answers">): number {
  return look.answers.find(({ place }) => place !== null)?.place ?? 0;
}

/** What is selected of a stack; its last layer and the token `first`, if the selection is elsewhere. */
export function cellOf(stack: Stack, tokens: number, first = 0): Cell {
  const [name, layer] = selection.block.split(".");
  if (name !== stack.name) return { layer: stack.layers - 1, place: first };
  return {
    layer: Math.min(Number(layer), stack.layers - 1),
    place: Math.min(selection.query ?? first, tokens - 1),
  };
}

/** Select a layer and a token; in the same kind of block as before, if the stack has it. */
export function chooseCell(stack: Stack, { layer, place }: Cell): void {
  const [name, , kind] = selection.block.split(".");
  selection.block = `${stack.name}.${layer}.${name === stack.name ? kind : "self"}`;
  selection.query = place;
  selection.key = null;
}
