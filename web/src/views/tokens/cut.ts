// How a line was cut: its words, the pieces of each, and which of these are special, or single bytes of a character.

import type { Pieces } from "../../lib/types";

export interface Piece {
  place: number;
  id: number;
  label: string;
  special: boolean;
}

/** Pieces that are shown together: bytes that spell characters, or one piece alone. */
export interface Run {
  pieces: Piece[];
  /** What bytes spell; null where the piece says it itself. */
  spelled: string | null;
}

export interface Word {
  text: string;
  runs: Run[];
}

const BYTE = /^<0x([0-9A-F]{2})>$/;
const SPECIAL = 4; // <pad>, <unk>, <bos> and <eos> have the first ids in every vocabulary; <mask> the next, if it is there

export function cut(line: Pieces): Word[] {
  const words: Word[] = line.words.map((text) => ({ text, runs: [] }));
  line.ids.forEach((id, place) => {
    const label = line.labels[place];
    const piece = { place, id, label, special: id < SPECIAL || (id === SPECIAL && label === "<mask>") };
    const { runs } = words[line.word_of_piece[place]];
    const last = runs.at(-1);
    if (last && isByte(piece) && isByte(last.pieces[0])) last.pieces.push(piece);
    else runs.push({ pieces: [piece], spelled: null });
  });
  for (const { runs } of words) {
    for (const run of runs) if (isByte(run.pieces[0])) run.spelled = spell(run.pieces);
  }
  return words;
}

function isByte({ label }: Piece): boolean {
  return BYTE.test(label);
}

function spell(bytes: Piece[]): string {
  return new TextDecoder().decode(Uint8Array.from(bytes, ({ label }) => parseInt(BYTE.exec(label)![1], 16)));
}
