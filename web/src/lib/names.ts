// What people call the parts of a model.

import { t } from "./language.svelte";

/** "dec.1.cross" as words; layers count from 1 on the page, as in the paper. */
export function blockName(block: string): string {
  const [stack, layer, kind] = block.split(".");
  return t(`block.${stack}.${kind}` as "block.enc.self", { layer: Number(layer) + 1 });
}
