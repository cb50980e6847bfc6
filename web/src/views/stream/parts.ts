// What the parts of a stack and of a logit are called.

import { t } from "../../lib/language.svelte";
import { blockName } from "../../lib/heads";
import type { Part } from "../../lib/types";

export function sublayerName(name: string): string {
  const [stack, layer, kind] = name.split(".");
  if (kind !== "ffn") return blockName(name);
  return t(stack === "enc" ? "stream.ffn.enc" : "stream.ffn.dec", { layer: Number(layer) + 1 });
}

const SOURCES = {
  src: "stream.source.embedding",
  tgt: "stream.source.embedding",
  enc: "stream.source.last",
  dec: "stream.source.last",
  transform: "stream.source.transform",
  output: "stream.source.output",
} as const;

export function sourceName(source: string): string {
  return source in SOURCES ? t(SOURCES[source as keyof typeof SOURCES]) : sublayerName(source);
}

export function partName({ source, kind, head }: Part): string {
  const name = sourceName(source);
  if (kind === "hidden") return name;
  const isNorm = SOURCES[source as keyof typeof SOURCES] === "stream.source.last";
  return t(`stream.part.${isNorm ? "bias" : kind}`, { name, head: (head ?? 0) + 1 });
}
