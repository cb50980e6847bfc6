import { expect, test } from "vitest";
import { kindsOf, layersOf, statesIn } from "./layers";

const NAMES = [
  "src.tok",
  "enc.0.in",
  "enc.0.hidden",
  "dec.0.start",
  "dec.0.hidden",
  "dec.1.hidden",
  "dec.1.cross.attn",
];
const GATES = ["enc.0.reset_gate", "enc.0.update_gate", "dec.1.reset_gate"];

test("the layers are those whose hidden states were recorded", () => {
  expect(layersOf([...NAMES, ...GATES])).toEqual([
    { stack: "enc", number: 0 },
    { stack: "dec", number: 0 },
    { stack: "dec", number: 1 },
  ]);
});

test("a layer has its hidden state and its own gates", () => {
  expect(kindsOf([...NAMES, ...GATES], { stack: "enc", number: 0 })).toEqual(["hidden", "reset_gate", "update_gate"]);
  expect(kindsOf([...NAMES, ...GATES], { stack: "dec", number: 0 })).toEqual(["hidden"]);
});

test("a Transformer has no states", () => {
  expect(statesIn(["enc.0.self.attn", "enc.0.ffn.h", "logits"])).toEqual([]);
});
