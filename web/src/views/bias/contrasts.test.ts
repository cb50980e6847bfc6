import { expect, test } from "vitest";

import { lines, rows } from "./contrasts.svelte";
import { EXAMPLES, suitable } from "./examples";
import { csv } from "../../lib/csv";

test("a bar stands for a tab where nobody typed one", () => {
  expect(lines("a|b | c| d\nc|d\te")).toEqual(["a\tb\tc\t d", "c|d\te"]);
});

test("every example has five columns, pairs and controls", () => {
  for (const text of Object.values(EXAMPLES).flatMap((lists) => Object.values(lists))) {
    const cells = lines(text.trim()).map((line) => line.split("\t"));
    expect(cells.every(({ length }) => length === 5)).toBe(true);
    expect(new Set(cells.map((row) => row[4].trim()))).toEqual(new Set(["pair", "control"]));
  }
});

test("a spreadsheet gets every number as it is", () => {
  const [title, row] = rows([
    {
      contrast: { line: 3, sources: ["a", "b"], forms: ["c", "d"], kind: "pair" },
      scores: [
        [-1.25, -2],
        [-3, -1.5],
      ],
      preferences: [0.75, -1.5],
      shift: 2.25,
      attention: null,
    },
  ]);
  expect(row.length).toBe(title.length);
  expect(row.slice(6, 13)).toEqual([-1.25, -2, -3, -1.5, 0.75, -1.5, 2.25]);
  expect(csv([['a "b", c', 0.1]])).toBe('"a ""b"", c",0.1');
});

test("lists in the languages of the model are offered, or else all", () => {
  expect(suitable(EXAMPLES.translator, ["en", "de"]).map(([name]) => name)).toEqual(["en-de", "scenes en-de"]);
  expect(suitable(EXAMPLES.generator, ["en", ""]).map(([name]) => name)).toEqual(["en"]);
  expect(suitable(EXAMPLES.translator, ["fr", "nl"]).length).toBe(Object.keys(EXAMPLES.translator).length);
});
