import { expect, test, vi } from "vitest";

vi.stubGlobal("navigator", { language: "en" });
const { all, blockOf } = await import("./heads");

const BLOCKS = ["enc.0.self", "dec.0.self", "dec.0.cross", "dec.1.self"].map((name) => ({
  name,
  heads: 2,
  queries: "",
  keys: "",
}));

test("every head of every block is listed in order", () => {
  expect(all(BLOCKS.slice(0, 2)).map(({ block, number }) => `${block} ${number}`)).toEqual([
    "enc.0.self 0",
    "enc.0.self 1",
    "dec.0.self 0",
    "dec.0.self 1",
  ]);
});

test("a block that is not one of attention stands for its layer, and a strange one for the first", () => {
  expect(blockOf(BLOCKS, "dec.0.cross").name).toBe("dec.0.cross");
  expect(blockOf(BLOCKS, "dec.1.ffn").name).toBe("dec.1.self");
  expect(blockOf(BLOCKS, "dec.9.ffn").name).toBe("enc.0.self");
});
