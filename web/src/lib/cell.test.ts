import { beforeEach, expect, it } from "vitest";
import { cellOf, chooseCell, firstPlace, type Stack } from "./cell";
import { selection } from "./selection.svelte";

const decoder: Stack = { name: "dec", sequence: "tgt", layers: 3 };

beforeEach(() => {
  Object.assign(selection, { block: "enc.1.self", query: 4, key: 2 });
});

it("begins at the last layer where another stack is selected", () => {
  expect(cellOf(decoder, 5)).toEqual({ layer: 2, place: 0 });
  expect(cellOf(decoder, 5, 3)).toEqual({ layer: 2, place: 3 });
});

it("is what the other views show, and stays within the stack and its tokens", () => {
  Object.assign(selection, { block: "dec.1.cross", query: 4 });
  expect(cellOf(decoder, 5)).toEqual({ layer: 1, place: 4 });
  expect(cellOf({ ...decoder, layers: 1 }, 2)).toEqual({ layer: 0, place: 1 });
});

it("keeps the kind of attention that was looked at, if the stack has it", () => {
  chooseCell(decoder, { layer: 0, place: 2 });
  expect(selection).toMatchObject({ block: "dec.0.self", query: 2, key: null });
  selection.block = "dec.0.cross";
  chooseCell(decoder, { layer: 2, place: 1 });
  expect(selection.block).toBe("dec.2.cross");
});

it("looks at the first gap first", () => {
  const gap = { options: [], place: 6 };
  expect(firstPlace({ answers: [{ ...gap, place: null }, gap, { ...gap, place: 9 }] })).toBe(6);
  expect(firstPlace({ answers: [] })).toBe(0);
});
