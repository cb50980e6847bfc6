// Two models, or one model on two texts, beside each other.

import type { Tensor } from "../../lib/safetensors";
import { spelled } from "../../lib/spelling";
import type { Look, Model, Pieces } from "../../lib/types";

/** Other models that read what a model reads (text, or the same kind of file), those of its task and language first. */
export function readers(models: Model[], first: Model): Model[] {
  const unlike = ({ task, languages }: Model) =>
    Number(task !== first.task) + 2 * Number(languages[0] !== first.languages[0]);
  return models
    .filter(({ name, modality }) => name !== first.name && modality === first.modality)
    .sort((a, b) => unlike(a) - unlike(b));
}

/** Whether both lines hold the same tokens, so that their places are comparable. */
export function alike(a: Pieces, b: Pieces): boolean {
  return a.labels.length === b.labels.length && a.labels.every((label, i) => label === b.labels[i]);
}

/** Where two texts part: the place of the piece in each with which they differ; null if they are the same. */
export function parting(a: string[], b: string[]): [number, number] | null {
  const [one, other] = [spelled(a), spelled(b)];
  if (one === other) return null;
  const common = [...one].findIndex((sign, i) => sign !== [...other][i]);
  const length = common < 0 ? [...one].length : common;
  const place = (pieces: string[]) => {
    const found = pieces.findIndex((_, i) => [...spelled(pieces.slice(0, i + 1))].length > length);
    return found < 0 ? pieces.length : found;
  };
  return [place(a), place(b)];
}

/** What two looks are called beside each other: their models, or their texts if it is one model. */
export function names(one: Look, other: Look): [string, string] {
  if (one.model.name !== other.model.name) return [one.model.name, other.model.name];
  return [one, other].map(({ question }) => `“${question.text}”`) as [string, string];
}

/** The log-probability of one token at each place, from logits of shape (places, vocabulary). */
export function logProbs(logits: Tensor, ids: number[]): number[] {
  const width = logits.shape[1];
  return ids.map((id, place) => {
    const row = logits.values.subarray(place * width, (place + 1) * width);
    let largest = -Infinity;
    for (const x of row) if (x > largest) largest = x;
    let sum = 0;
    for (const x of row) sum += Math.exp(x - largest);
    return row[id] - largest - Math.log(sum);
  });
}

/** b - a. */
export function difference(a: Tensor, b: Tensor): Tensor {
  return { shape: a.shape, values: b.values.map((x, i) => x - a.values[i]) };
}

/** How much of the attention went elsewhere: 0 if both look alike, 1 if they share no key; the mean over queries. */
export function moved(a: Tensor, b: Tensor): number {
  let sum = 0;
  for (let i = 0; i < a.values.length; i++) sum += Math.abs(a.values[i] - b.values[i]);
  return sum / 2 / a.shape[0];
}

/** The layer from which on a token stays the model's first choice, by place, counted from 1. */
export function settled(rank: number[][]): number[] {
  return rank[0].map((_, place) => rank.map((row) => row[place] > 0).lastIndexOf(true) + 2);
}
