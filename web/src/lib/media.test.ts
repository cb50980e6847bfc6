import { expect, test } from "vitest";
import { boxOf, laid, firstOfText, meanRow, mediaLine, pitches, spectrumOf, strongest, times } from "./media";
import type { ImageMedia, AudioMedia } from "./types";

const picture: ImageMedia = { kind: "image", height: 14, width: 21, rows: 2, columns: 3, before: 1, png: "" };
const sound: AudioMedia = {
  kind: "audio",
  frames: 3,
  mels: 2,
  hop: 0.02,
  stride: 2,
  bands: [100, 300],
  spectrum: btoa(String.fromCharCode(0, 255, 51, 102, 153, 204)),
};

test("a patch lies in its row and column, and a class token nowhere", () => {
  expect(boxOf(picture, 0, 7)).toBeNull();
  expect(boxOf(picture, 1, 7)).toEqual({ left: 0, top: 0, width: 1 / 3, height: 1 / 2 });
  expect(boxOf(picture, 6, 7)).toEqual({ left: 2 / 3, top: 1 / 2, width: 1 / 3, height: 1 / 2 });
  expect(boxOf(picture, 7, 7)).toBeNull();
});

test("weights of patches are a grid, and that of the class token stands apart", () => {
  const { grid, apart } = laid(picture, Float32Array.of(0.5, 1, 2, 3, 4, 5, 6));
  expect(apart).toEqual([0.5]);
  expect(grid.shape).toEqual([2, 3]);
  expect([...grid.values]).toEqual([1, 2, 3, 4, 5, 6]);
});

test("frames lie side by side", () => {
  expect(laid(sound, Float32Array.of(1, 2)).grid.shape).toEqual([1, 2]);
  expect(boxOf(sound, 1, 2)).toEqual({ left: 0.5, top: 0, width: 0.5, height: 1 });
});

test("a spectrum is drawn with high bands above and later frames at the right", () => {
  const { shape, values } = spectrumOf(sound);
  expect(shape).toEqual([2, 3]);
  expect([...values].map((x) => Math.round(x * 255))).toEqual([255, 102, 204, 0, 51, 153]);
});

test("axes have few and round numbers", () => {
  expect(times(sound).map((time) => time.toFixed(2))).toEqual(["0.00", "0.01", "0.02", "0.03", "0.04", "0.05", "0.06"]);
  expect(times({ ...sound, frames: 100 })).toEqual([0, 0.5, 1, 1.5, 2]);
  expect(pitches(sound)).toEqual([
    { top: 0.75, hertz: 100 },
    { top: 0.25, hertz: 300 },
  ]);
});

test("the strongest come first, and a mean is over the rows", () => {
  expect(strongest(Float32Array.of(1, 3, 2), 2)).toEqual([1, 2]);
  expect([...meanRow({ shape: [2, 2], values: Float32Array.of(1, 2, 3, 6) })]).toEqual([2, 4]);
});

test("the first token of text is found behind marks, and marks alone have a first one, too", () => {
  expect(firstOfText(["<|notimestamps|>", " And", " so"])).toBe(1);
  expect(firstOfText(["<", ">", "<|en|>"])).toBe(0);
  expect(firstOfText(["<bos>"])).toBe(0);
});

test("the line of an image is the one that is read first, and a text has none", () => {
  const line = { read: { ids: [], labels: [], words: [], word_of_piece: [] }, written: null };
  expect(mediaLine({ media: picture, lines: { src: line, tgt: line } })).toBe("src");
  expect(mediaLine({ media: sound, lines: { tgt: line } })).toBe("tgt");
  expect(mediaLine({ media: null, lines: { src: line } })).toBeNull();
});
