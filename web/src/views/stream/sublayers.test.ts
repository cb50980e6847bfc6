import { describe, expect, it } from "vitest";
import { bySource, growth, minus, neurons, sublayersOf } from "./sublayers";
import type { Attribution, Flow, Part } from "../../lib/types";

const flow = (before: number[], added: number[]): Flow => ({
  before,
  added,
  after: [],
  normalised: [],
  mean: [],
  deviation: [],
});
const look = {
  stream: { "enc.0.self": flow([2, 4], [1, 8]), "enc.0.ffn": flow([1, 1], [1, 1]), "dec.0.cross": flow([1], [1]) },
};
const part = (source: string, kind: Part["kind"], value: number, head: number | null = null): Part => ({
  source,
  kind,
  value,
  head,
});
const attribution = (parts: Part[], logit: number): Attribution => ({
  place: 0,
  token: 5,
  logit,
  parts,
  difference: parts.reduce((sum, { value }) => sum + value, 0) - logit,
});

describe("a stack", () => {
  it("has its own sublayers, in their order", () => {
    expect(sublayersOf(look, "enc")).toEqual(["enc.0.self", "enc.0.ffn"]);
  });

  it("grows by what is added, compared with what was there", () => {
    expect(growth(look, "enc.0.self")).toEqual([0.5, 2]);
  });
});

describe("the parts of a logit", () => {
  const parts = [part("tgt", "token", 1), part("dec.0.self", "head", 2, 0), part("dec.0.self", "bias", -0.5)];

  it("are summed by where they come from, and nothing is lost", () => {
    expect(bySource(parts)).toEqual([
      { source: "tgt", value: 1 },
      { source: "dec.0.self", value: 1.5 },
    ]);
  });

  it("say of two tokens what makes one likelier, and still sum", () => {
    const other = attribution(
      parts.map((one) => ({ ...one, value: one.value / 4 })),
      0.625,
    );
    const found = minus(attribution(parts, 2.5), other);
    expect(found.parts.map(({ value }) => value)).toEqual([0.75, 1.5, -0.375]);
    expect(found.logit).toBe(1.875);
    expect(found.difference).toBe(0);
  });
});

describe("neurons", () => {
  it("are strong on both sides of 0, and silent at 0 exactly", () => {
    expect(neurons(Float32Array.from([0, -3, 1e-9, 2]), 2)).toEqual({ strongest: [1, 3], silent: 0.25 });
  });

  it("are all shown where there are few", () => {
    expect(neurons(Float32Array.from([0, 5]), 10).strongest).toEqual([1, 0]);
  });
});
