import fc from "fast-check";
import { expect, test } from "vitest";
import type { Pieces } from "../../lib/types";
import { byWord } from "./words";

/** Words by how many pieces each has. */
function said(sizes: number[]): Pieces {
  const word_of_piece = sizes.flatMap((size, word) => Array<number>(size).fill(word));
  return {
    ids: word_of_piece,
    labels: word_of_piece.map((word, i) => `${word}.${i}`),
    words: sizes.map((_, word) => `${word}`),
    word_of_piece,
  };
}

const sizes = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 5 });
const weighed = fc
  .tuple(sizes, sizes)
  .map(([queries, keys]) => ({ queries: said(queries), keys: said(keys) }))
  .chain(({ queries, keys }) => {
    const shape = [queries.labels.length, keys.labels.length];
    const length = shape[0] * shape[1];
    const values = fc.float32Array({ min: 0, max: 1, noNaN: true, minLength: length, maxLength: length });
    return values.map((values) => ({ queries, keys, weights: { shape, values } }));
  });

test("the pieces of a key are summed, those of a query averaged", () => {
  const values = Float32Array.of(0.5, 0.25, 0.25, 0, 0, 1, 0.125, 0.375, 0.5);
  const found = byWord({ shape: [3, 3], values }, said([2, 1]), said([1, 2]));
  expect(found.shape).toEqual([2, 2]);
  expect([...found.values]).toEqual([0.25, 0.75, 0.125, 0.875]);
});

test("words of one piece each change nothing", () => {
  fc.assert(
    fc.property(weighed, ({ queries, keys, weights }) => {
      const single = (pieces: Pieces) => said(pieces.labels.map(() => 1));
      expect(byWord(weights, single(queries), single(keys))).toEqual(weights);
    }),
  );
});

test("a query's weights keep their sum, averaged over its pieces", () => {
  fc.assert(
    fc.property(weighed, ({ queries, keys, weights }) => {
      const found = byWord(weights, queries, keys);
      const sum = (values: Float32Array, width: number, row: number) =>
        values.subarray(row * width, (row + 1) * width).reduce((a, b) => a + b, 0);
      queries.words.forEach((_, word) => {
        const pieces = queries.word_of_piece.flatMap((other, piece) => (other === word ? [piece] : []));
        const sums = pieces.map((piece) => sum(weights.values, keys.labels.length, piece));
        const mean = sums.reduce((a, b) => a + b) / sums.length;
        expect(sum(found.values, keys.words.length, word)).toBeCloseTo(mean, 4);
      });
    }),
  );
});
