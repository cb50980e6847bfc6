import { expect, it, vi } from "vitest";
import { partName, sublayerName } from "./parts";
import type { Part } from "../../lib/types";

vi.hoisted(() => vi.stubGlobal("navigator", { language: "en" }));

const named = (source: string, kind: Part["kind"], head: number | null = null) =>
  partName({ source, kind, value: 0, head });

it("layers and heads count from 1", () => {
  expect(sublayerName("enc.0.ffn")).toBe("Encoder 1, FFN");
  expect(sublayerName("dec.4.cross")).toBe("Decoder 5, cross");
  expect(named("dec.0.self", "head", 0)).toBe("Decoder 1, self, head 1");
});

it("every part of a logit has a name of its own", () => {
  const parts = [
    ...(["token", "position", "norm"] as const).map((kind) => named("src", kind)),
    ...(["hidden", "bias", "norm"] as const).map((kind) => named("enc.0.ffn", kind)),
    ...(["bias", "norm"] as const).map((kind) => named("transform", kind)),
    named("enc", "norm"),
    named("output", "bias"),
  ];
  expect(new Set(parts).size).toBe(parts.length);
  expect(named("dec", "norm")).toBe("Last norm, bias");
});
