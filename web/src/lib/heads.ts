// Blocks and heads: lists of them, and what people call them.

import { t } from "./language.svelte";
import type { Block, Head } from "./types";

export const same = (a: Head, b: Head): boolean => a.block === b.block && a.number === b.number;

export const all = (blocks: Block[]): Head[] =>
  blocks.flatMap(({ name, heads }) => Array.from({ length: heads }, (_, number) => ({ block: name, number })));

/** "dec.1.cross" as words; layers count from 1 on the page, as in the paper. */
export function blockName(block: string): string {
  const [stack, layer, kind] = block.split(".");
  return t(`block.${stack}.${kind}` as "block.enc.self", { layer: Number(layer) + 1 });
}

/** The block of that name; else one of the same layer, such as for "dec.1.ffn"; else the first. */
export function blockOf(blocks: Block[], name: string): Block {
  const layer = name.split(".").slice(0, 2).join(".");
  const named = (test: (name: string) => boolean) => blocks.find((block) => test(block.name));
  return named((one) => one === name) ?? named((one) => one.startsWith(`${layer}.`)) ?? blocks[0];
}

/** The words for a weight: of which query, on which key; `next`: the query is named by the token that is written next. */
export function weightOn(query: string, key: string, next = query.startsWith("→ ")): string {
  const isolated = (name: string) => `\u2068${name}\u2069`; // so that it may be written from right to left
  return t(next ? "weight.writing" : "weight.reading", {
    query: isolated(query.replace(/^→ /, "")),
    key: isolated(key),
  });
}

/** A head as words; heads count from 1 on the page. */
export function headName({ block, number }: Head): string {
  return t("heads.chosen", { block: blockName(block), head: number + 1 });
}
