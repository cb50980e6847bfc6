// Round numbers along an axis.

/** Multiples of 1, 2 or 5 times a power of ten, about `count` of them, within the range. */
export function ticks(low: number, high: number, count = 5): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9))!;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Digits behind the point that tell neighbouring ticks apart. */
export function digits(marks: number[]): number {
  if (marks.length < 2) return 2;
  return Math.min(8, Math.max(0, -Math.floor(Math.log10(marks[1] - marks[0]) + 1e-9)));
}
