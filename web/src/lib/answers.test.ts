import { expect, test } from "vitest";
import { best, writtenText } from "./answers";
import type { Look } from "./types";

test("what is written token by token is a text, and a class is none", () => {
  const look = (target: string | null, ...options: object[]) =>
    ({ question: { target }, answers: options.length ? [{ place: null, options }] : [] }) as unknown as Look;
  const written = { text: "ein Hund", pieces: ["ein", "Hund"] };
  expect(writtenText(look(null, written))).toBe("ein Hund");
  expect(writtenText(look("zwei", written))).toBe("zwei");
  expect(best(look(null, { text: "c", pieces: [] }))!.text).toBe("c");
  expect(writtenText(look(null, { text: "c", pieces: [] }))).toBeNull();
  expect(best(look(null))).toBeNull();
});
