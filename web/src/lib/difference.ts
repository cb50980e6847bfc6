// Two texts word by word: what of each is not in the other, by the longest common subsequence.

export interface Part {
  text: string;
  kept: boolean;
}

/** A text as its words and what is between them; Chinese has words too. */
export function words(text: string, language: string): string[] {
  return [...new Intl.Segmenter(language, { granularity: "word" }).segment(text)].map(({ segment }) => segment);
}

/** The first row, each of its parts with whether the second has it as well, in the same order. */
export function difference(row: string[], other: string[]): Part[] {
  const longest = Array.from({ length: row.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = row.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      longest[i][j] = row[i] === other[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const parts: Part[] = [];
  for (let i = 0, j = 0; i < row.length;) {
    if (row[i] === other[j]) {
      parts.push({ text: row[i++], kept: true });
      j++;
    } else if (j < other.length && longest[i][j + 1] >= longest[i + 1][j]) j++;
    else parts.push({ text: row[i++], kept: false });
  }
  return parts;
}
