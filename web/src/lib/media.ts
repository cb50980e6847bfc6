// Images and audio: where the positions of an encoder lie on them, and what a page draws of them.

import type { Tensor } from "./safetensors";
import type { Look, Media, ImageMedia, AudioMedia } from "./types";

/** A rectangle, in shares of the width and height of what is drawn. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Numbers of a grid, and those of positions that are not on it, such as a class token. */
export interface Laid {
  grid: Tensor;
  apart: number[];
}

/** The line of a look whose positions are patches or frames; null: it is all text. */
export function mediaLine(look: Pick<Look, "media" | "lines">): string | null {
  if (!look.media) return null;
  return "src" in look.lines ? "src" : Object.keys(look.lines)[0];
}

/** Positions that come before the patches; audio has none. */
export const before = (media: Media): number => (media.kind === "image" ? media.before : 0);

/** Rows and columns of the positions that lie on a image or audio. */
export function gridOf(media: Media, positions: number): [rows: number, columns: number] {
  return media.kind === "image" ? [media.rows, media.columns] : [1, positions];
}

/** A number for each position, as a matrix over the image or audio. */
export function laid(media: Media, weights: Float32Array): Laid {
  const first = before(media);
  return {
    grid: { shape: gridOf(media, weights.length), values: weights.subarray(first) },
    apart: [...weights.subarray(0, first)],
  };
}

/** Where a position lies; null: it is not on the image. */
export function boxOf(media: Media, position: number, positions: number): Box | null {
  const [rows, columns] = gridOf(media, positions);
  const at = position - before(media);
  if (at < 0 || at >= rows * columns) return null;
  const [row, column] = [Math.floor(at / columns), at % columns];
  return { left: column / columns, top: row / rows, width: 1 / columns, height: 1 / rows };
}

/** The place of the first token that is text, and no mark such as <|notimestamps|>; the first of all if there is none. */
export const firstOfText = (tokens: string[]): number =>
  Math.max(
    0,
    tokens.findIndex((token) => !/^<.+>$/.test(token)),
  );

/** The positions with the largest weights, largest first. */
export function strongest(weights: Float32Array, count: number): number[] {
  return [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, count);
}

/** The mean of the rows of a matrix. */
export function meanRow({ shape: [rows, columns], values }: Tensor): Float32Array {
  const mean = new Float32Array(columns);
  values.forEach((value, at) => (mean[at % columns] += value / rows));
  return mean;
}

/** The spectrum as a matrix of numbers from 0 to 1: a row a band, the highest first, a column a frame. */
export function spectrumOf(media: AudioMedia): Tensor {
  const bytes = Uint8Array.from(atob(media.spectrum), (c) => c.charCodeAt(0));
  const { frames, mels } = media;
  const values = new Float32Array(bytes.length);
  for (let frame = 0; frame < frames; frame++) {
    for (let band = 0; band < mels; band++) {
      values[(mels - 1 - band) * frames + frame] = bytes[frame * mels + band] / 255;
    }
  }
  return { shape: [mels, frames], values };
}

/** Times for an axis, in seconds, at most so many: 0, 0.2, 0.4 ... */
export function times(media: AudioMedia, most = 8): number[] {
  const seconds = media.frames * media.hop;
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60];
  const step = steps.find((step) => seconds / step <= most) ?? 600;
  return Array.from({ length: Math.floor(seconds / step + 1e-9) + 1 }, (_, i) => i * step);
}

/** Some bands for an axis: their place from the top, in shares of the height, and their middle in Hz. */
export function pitches(media: AudioMedia, count = 4): { top: number; hertz: number }[] {
  const last = media.mels - 1;
  const bands = [...new Set(Array.from({ length: count }, (_, i) => Math.round((i * last) / (count - 1 || 1))))];
  return bands.map((band) => ({ top: (last - band + 0.5) / media.mels, hertz: media.bands[band] }));
}

export const pictureUrl = (media: ImageMedia): string => `data:image/png;base64,${media.png}`;
