import { expect, test } from "vitest";
import { cut } from "./cut";

const LINE = {
  ids: [2, 468, 379, 173, 234, 154, 139, 199, 4540, 1, 3],
  labels: ["<bos>", "▁The", "ir", "▁", "<0xE4>", "<0xB8>", "<0xAD>", "<0xC3>", "▁cup", "<unk>", "<eos>"],
  words: ["<bos>", "Their", "中\ufffd", "cup", "<unk>", "<eos>"],
  word_of_piece: [0, 1, 1, 2, 2, 2, 2, 2, 3, 4, 5],
};

test("every piece stands in its word, in order", () => {
  const words = cut(LINE);
  expect(words.map(({ text }) => text)).toEqual(LINE.words);
  const pieces = words.flatMap(({ runs }) => runs.flatMap((run) => run.pieces));
  expect(pieces.map(({ place }) => place)).toEqual(LINE.ids.map((_, place) => place));
  expect(pieces.map(({ id }) => id)).toEqual(LINE.ids);
  expect(pieces.map(({ label }) => label)).toEqual(LINE.labels);
});

test("bytes that follow each other are joined to what they spell", () => {
  const runs = cut(LINE)[2].runs;
  expect(runs.map(({ spelled }) => spelled)).toEqual([null, "中\ufffd"]);
  expect(runs[1].pieces).toHaveLength(4);
});

test("bytes of two words stay apart", () => {
  const line = { ids: [5, 6], labels: ["<0x41>", "<0x42>"], words: ["A", "B"], word_of_piece: [0, 1] };
  expect(cut(line).map(({ runs }) => runs[0].spelled)).toEqual(["A", "B"]);
});

test("special tokens are told from pieces", () => {
  const special = cut(LINE).flatMap(({ runs }) => runs.flatMap((run) => run.pieces.map((piece) => piece.special)));
  expect(special).toEqual([true, false, false, false, false, false, false, false, false, true, true]);
  const masked = { ids: [4, 4], labels: ["<mask>", "<0x00>"], words: ["<mask>", "\0"], word_of_piece: [0, 1] };
  expect(cut(masked).map(({ runs }) => runs[0].pieces[0].special)).toEqual([true, false]);
});
