// The order of a good lecture on the Transformer: where each stop leads.

import type { Page } from "../../lib/selection.svelte";
import type { Head, Look } from "../../lib/types";

export interface Place {
  page: Page;
  block?: string;
  head?: number;
  step?: number;
  line?: string;
  query?: number;
}

export interface Stop extends Place {
  name: string;
}

const STEPS = [1, 2, 3, 4, 5, 6]; // of the formula

/**
 * The stops that a look has something for, in their order.
 *
 * @param look what is shown.
 * @param live whether anything can be asked that is not there yet.
 * @param held the one head whose formula is there, where not all are.
 */
export function stops(look: Look, live: boolean, held: Head | null): Stop[] {
  const blocks = look.blocks.map(({ name }) => name);
  const first = held ?? { block: blocks[0], number: 0 };
  const last = (kind: string) => blocks.filter((name) => name.endsWith(kind)).at(-1);
  const [cross, masked] = [last(".cross"), blocks.find((name) => /^dec\..*\.self$/.test(name))];
  const line = Object.keys(look.lines)[0];
  const [stack] = look.model.stacks;
  const all: (Stop | false)[] = [
    { name: "embedding", page: "tokens", line },
    live && { name: "position", page: "tokens", line, query: 1 },
    ...STEPS.map((step): Stop => ({
      name: `attention.${step}`,
      page: "formula",
      block: first.block,
      head: first.number,
      step,
    })),
    { name: "heads", page: "attention", block: blocks[0], head: 0 },
    { name: "stream", page: "stream", block: blocks[0] },
    { name: "feed-forward", page: "stream", block: `${stack.name}.0.ffn` },
    cross !== undefined && { name: "cross", page: "attention", block: cross, head: 0 },
    masked !== undefined && { name: "masked", page: "attention", block: masked, head: 0 },
    look.lens !== null && { name: "output", page: "lens" },
    look.search !== null && { name: "search", page: "search" },
    live && { name: "training", page: "training" },
  ];
  return all.filter((stop) => stop !== false);
}
