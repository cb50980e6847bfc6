import { expect, test } from "vitest";
import type { Look, Model } from "../../lib/types";
import { alike, difference, logProbs, moved, names, parting, readers, settled } from "./compare";

const line = (labels: string[]) => ({ ids: labels.map((_, i) => i), labels, words: labels, word_of_piece: [] });

test("lines are alike if all of their tokens are", () => {
  expect(alike(line(["a", "b"]), line(["a", "b"]))).toBe(true);
  expect(alike(line(["a", "b"]), line(["a", "c"]))).toBe(false);
  expect(alike(line(["a", "b"]), line(["a", "b", "c"]))).toBe(false);
});

test("sequences part where they first differ, or where one ends", () => {
  expect(parting(["▁a", "▁b"], ["▁a", "▁b"])).toBeNull();
  expect(parting(["▁a", "▁b"], ["▁a", "▁c"])).toEqual([1, 1]);
  expect(parting(["▁a"], ["▁a", "▁c"])).toEqual([1, 1]);
  expect(parting([], [])).toBeNull();
});

test("sequences that are cut otherwise part where their texts do", () => {
  expect(parting(["▁Zwe", "i", "▁Hunde"], ["▁Zwei", "▁Hunde"])).toBeNull();
  expect(parting(["▁Zwe", "i", "▁Hunde"], ["▁Zwei", "▁Katzen"])).toEqual([2, 1]);
});

test("models that read the same are offered, the most alike first", () => {
  const model = (name: string, task: string, modality: string, language: string) =>
    ({ name, task, modality, languages: [language, ""] }) as unknown as Model;
  const first = model("a", "translation", "text", "en");
  const models = [
    model("sounds", "classification", "audio", ""),
    model("gpt", "language_model", "text", "en"),
    model("zh-en", "translation", "text", "zh"),
    first,
    model("en-fr", "translation", "text", "en"),
  ];
  expect(readers(models, first).map(({ name }) => name)).toEqual(["en-fr", "gpt", "zh-en"]);
  expect(readers(models, models[0])).toEqual([]);
});

test("two looks are called by what differs", () => {
  const look = (name: string, text: string) => ({ model: { name }, question: { text } }) as unknown as Look;
  expect(names(look("a", "x"), look("b", "x"))).toEqual(["a", "b"]);
  expect(names(look("a", "x"), look("a", "y"))).toEqual(["“x”", "“y”"]);
});

test("log-probabilities of all tokens of a place are those of a distribution", () => {
  const logits = { shape: [2, 3], values: Float32Array.of(1, 2, 3, 1000, 0, -1000) };
  const probabilities = [0, 1, 2].map((id) => logProbs(logits, [id, id]).map(Math.exp));
  expect(probabilities[0][0] + probabilities[1][0] + probabilities[2][0]).toBeCloseTo(1, 12);
  expect(probabilities[2][0] / probabilities[1][0]).toBeCloseTo(Math.E, 12);
  expect(logProbs(logits, [0, 1])[1]).toBe(-1000);
});

test("differences are the second less the first", () => {
  const one = { shape: [1, 2], values: Float32Array.of(0.25, 0.75) };
  const other = { shape: [1, 2], values: Float32Array.of(0.5, 0.5) };
  expect([...difference(one, other).values]).toEqual([0.25, -0.25]);
});

test("a token is settled from the layer after which it stays first", () => {
  expect(
    settled([
      [0, 3, 0],
      [5, 0, 0],
      [0, 0, 0],
    ]),
  ).toEqual([3, 2, 1]);
});

test("attention that went elsewhere is counted once", () => {
  const rows = (...values: number[]) => ({ shape: [2, 3], values: Float32Array.from(values) });
  const one = rows(1, 0, 0, 0.5, 0.25, 0.25);
  expect(moved(one, one)).toBe(0);
  expect(moved(one, rows(0, 1, 0, 0.5, 0.25, 0.25))).toBe(0.5);
  expect(moved(rows(1, 0, 0, 1, 0, 0), rows(0, 1, 0, 0, 0, 1))).toBe(1);
});
