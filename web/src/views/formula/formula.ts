// Formula 1 of "Attention Is All You Need" once more, in float64, beside what the model computed in float32.

import type { Tensor } from "../../lib/safetensors";

export type Matrix = Float64Array[];

export function rows(tensor: Tensor): Matrix {
  const [count, width] = tensor.shape.slice(-2);
  return Array.from({ length: count }, (_, i) => Float64Array.from(tensor.values.subarray(i * width, (i + 1) * width)));
}

export function dot(a: Float64Array, b: Float64Array): number {
  return a.reduce((sum, x, i) => sum + x * b[i], 0);
}

/** q k^T / sqrt(d_k). */
export function scores(q: Matrix, k: Matrix): Matrix {
  return q.map((row) => Float64Array.from(k, (column) => dot(row, column) / Math.sqrt(row.length)));
}

export function softmax(row: Float64Array): Float64Array {
  const largest = Math.max(...row);
  const powers = row.map((x) => Math.exp(x - largest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((x) => x / sum);
}

export function add(a: Matrix, b: Matrix): Matrix {
  return a.map((row, i) => row.map((x, j) => x + b[b.length === 1 ? 0 : i][j]));
}

/** Weighted values. */
export function mix(weights: Matrix, v: Matrix): Matrix {
  return weights.map((row) => {
    const sum = new Float64Array(v[0].length);
    row.forEach((weight, j) => v[j].forEach((x, i) => (sum[i] += weight * x)));
    return sum;
  });
}

/** The largest difference between what was computed here and there. */
export function apart(a: Matrix, b: Matrix): number {
  return Math.max(...a.map((row, i) => Math.max(...row.map((x, j) => Math.abs(x - b[i][j])))));
}

export interface Head {
  q: Matrix;
  k: Matrix;
  v: Matrix;
  score: Matrix;
  bias: Matrix;
  attn: Matrix;
  z: Matrix;
}

/** What one head computes, from its tensors: (1, rows, columns) each. */
export function head(tensors: Map<string, Tensor>, block: string): Head {
  const of = (place: string) => rows(tensors.get(`${block}.${place}`)!);
  return { q: of("q"), k: of("k"), v: of("v"), score: of("score"), bias: of("bias"), attn: of("attn"), z: of("z") };
}

/** The way from one query to what its head reads: an entry a key. */
export interface Worked {
  /** q k^T, which the model does not keep: it scales the queries first. */
  dots: Float64Array;
  scores: Float64Array;
  bias: Float64Array;
  sums: Float64Array;
  weights: Float64Array;
  /** The values, weighted. */
  parts: Matrix;
  z: Float64Array;
}

export function worked({ q, k, v, score, bias, attn, z }: Head, query: number): Worked {
  const [scores, weights] = [score[query], attn[query]];
  const added = bias[bias.length === 1 ? 0 : query];
  return {
    dots: Float64Array.from(k, (key) => dot(q[query], key)),
    scores,
    bias: added,
    sums: scores.map((x, j) => x + added[j]),
    weights,
    parts: v.map((row, j) => row.map((x) => weights[j] * x)),
    z: z[query],
  };
}

/** The largest size of a number, for a scale of colours. */
export function largest(a: Matrix): number {
  return a.reduce((most, row) => row.reduce((sofar, x) => Math.max(sofar, Math.abs(x)), most), 0);
}

/** How far the model is from float64, step by step, each step on the model's own input. */
export function checked({ q, k, v, score, bias, attn, z }: Head): { score: number; attn: number; z: number } {
  return {
    score: apart(scores(q, k), score),
    attn: apart(add(score, bias).map(softmax), attn),
    z: apart(mix(attn, v), z),
  };
}
