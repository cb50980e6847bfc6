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

const STEPS = [1, 2, 3, 4, 5, 6, 7]; // of the formula

/**
 * The stops that a look has something for, in their order.
 *
 * @param look what is shown.
 * @param live whether anything can be asked that is not there yet.
 * @param held the one head whose formula is there, where not all are.
 */
export function stops(look: Look, live: boolean, held: Head | null): Stop[] {
  const blocks = look.blocks.map(({ name }) => name);
  const last = (kind: string) => blocks.filter((name) => name.endsWith(kind)).at(-1);
  const [cross, masked] = [last(".cross"), blocks.find((name) => /^dec\..*\.self$/.test(name))];
  const [line, { read }] = Object.entries(look.lines)[0];
  const [stack] = look.model.stacks;
  const shown = held ?? { block: masked ?? blocks[0], number: 0 }; // where some keys are masked, if there is such a block
  const middle = Math.floor(read.ids.length / 2);
  const all: (Stop | false)[] = [
    live && { name: "embedding", page: "tokens", line, query: longest(read.labels) },
    live && { name: "position", page: "tokens", line, query: middle },
    ...STEPS.map((step): Stop => ({
      name: `attention.${step}`,
      page: "formula",
      block: shown.block,
      head: shown.number,
      query: middle,
      step,
    })),
    { name: "heads", page: "attention", block: blocks[0], head: 0 },
    { name: "stream", page: "stream", block: blocks[0] },
    live && stack !== undefined && { name: "feed-forward", page: "stream", block: `${stack.name}.0.ffn` },
    cross !== undefined && { name: "cross", page: "attention", block: cross, head: 0 },
    masked !== undefined && { name: "masked", page: "attention", block: masked, head: 0 },
    look.lens !== null && { name: "output", page: "lens" },
    look.search !== null && { name: "search", page: "search" },
    live && look.model.trained === true && { name: "training", page: "training" },
  ];
  return all.filter((stop) => stop !== false);
}

/** The place of the longest piece that is no special token: a whole word, most likely. */
function longest(labels: string[]): number {
  const lengths = labels.map((label) => (label.startsWith("<") ? 0 : label.length));
  return lengths.indexOf(Math.max(...lengths));
}
