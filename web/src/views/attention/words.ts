// Attention between words instead of pieces: summed over the pieces of a key, averaged over those of a query.

import type { Tensor } from "../../lib/safetensors";
import type { Pieces } from "../../lib/types";

export function byWord(weights: Tensor, queries: Pieces, keys: Pieces): Tensor {
  const [rows, columns] = [queries.words.length, keys.words.length];
  const width = keys.word_of_piece.length;
  const counts = new Float64Array(rows);
  for (const word of queries.word_of_piece) counts[word]++;
  const values = new Float32Array(rows * columns);
  queries.word_of_piece.forEach((row, i) => {
    keys.word_of_piece.forEach((column, j) => {
      values[row * columns + column] += weights.values[i * width + j] / counts[row];
    });
  });
  return { shape: [rows, columns], values };
}
