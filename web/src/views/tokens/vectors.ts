// Vectors one under another.

import { part, type Tensor } from "../../lib/safetensors";

export function stacked(vectors: Float32Array[]): Tensor {
  const width = vectors[0].length;
  const values = new Float32Array(vectors.length * width);
  vectors.forEach((vector, row) => values.set(vector, row * width));
  return { shape: [vectors.length, width], values };
}

export function length(vector: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += vector[i] ** 2;
  return Math.sqrt(sum);
}

/** Position schemes that add something to what is embedded; the others act inside attention. */
const ADDED = ["sinusoidal", "learned"];

export interface Stage {
  name: "tok" | "pos" | "sum" | "in";
  vector: Float32Array;
}

/** What becomes of one token before the first block: embedded, with its position, as it enters. */
export function stages(tensors: Map<string, Tensor>, line: string, place: number, positions: string): Stage[] {
  const names = adds(positions) ? (["tok", "pos", "sum", "in"] as const) : (["tok", "in"] as const);
  return names
    .filter((name) => tensors.has(`${line}.${name}`))
    .map((name) => ({ name, vector: part(tensors.get(`${line}.${name}`)!, place).values }));
}

export function adds(positions: string): boolean {
  return ADDED.includes(positions);
}
