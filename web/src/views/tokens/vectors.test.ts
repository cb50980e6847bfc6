import { expect, test } from "vitest";
import { length, stacked, stages } from "./vectors";

test("stacked vectors are rows of a matrix", () => {
  const { shape, values } = stacked([Float32Array.of(1, 2, 3), Float32Array.of(4, 5, 6)]);
  expect(shape).toEqual([2, 3]);
  expect([...values]).toEqual([1, 2, 3, 4, 5, 6]);
});

test("the length of a vector is Euclid's", () => {
  expect(length([3, 4])).toBe(5);
});

test("positions are a stage of their own only where they are added", () => {
  const tensor = (x: number) => ({ shape: [2, 1], values: Float32Array.of(0, x) });
  const tensors = new Map(["tok", "pos", "sum", "in"].map((name, i) => [`src.${name}`, tensor(i)]));
  const told = (positions: string) => stages(tensors, "src", 1, positions).map(({ name, vector }) => [name, vector[0]]);
  expect(told("sinusoidal")).toEqual([
    ["tok", 0],
    ["pos", 1],
    ["sum", 2],
    ["in", 3],
  ]);
  expect(told("rotary")).toEqual([
    ["tok", 0],
    ["in", 3],
  ]);
});
