// Colours that the colour-blind can tell apart: cividis for amounts, orange to purple for signed numbers, eight of Paul
// Tol's muted ones for heads, which carry a number as well.

// cividis (Nuñez, Anderton & Renslow 2018), every 32nd of its 256 colours.
const CIVIDIS = [
  [0, 34, 78],
  [24, 55, 109],
  [62, 76, 109],
  [91, 97, 110],
  [118, 118, 117],
  [147, 141, 120],
  [180, 166, 112],
  [215, 194, 94],
  [253, 231, 55],
];

// ColorBrewer's PuOr, from negative to positive.
const PUOR = [
  [127, 59, 8],
  [179, 88, 6],
  [224, 130, 20],
  [253, 184, 99],
  [254, 224, 182],
  [247, 247, 247],
  [216, 218, 235],
  [178, 171, 210],
  [128, 115, 172],
  [84, 39, 136],
  [45, 0, 75],
];

export const HEADS = ["#cc6677", "#332288", "#ddcc77", "#117733", "#88ccee", "#882255", "#44aa99", "#999933"];

/** 256 colours as RGBA in one number each, as ImageData wants them. */
export type Palette = Uint32Array;

export const amounts = palette(CIVIDIS);
export const signed = palette(PUOR);

function palette(stops: number[][]): Palette {
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const [r, g, b] = between(stops, i / 255);
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

function between(stops: number[][], share: number): number[] {
  const place = share * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return stops[low].map((from, i) => Math.round(from + (stops[low + 1][i] - from) * (place - low)));
}

/** The colour of a number from 0 to 1 for CSS. */
export function css(colours: Palette, share: number): string {
  const rgba = colours[Math.round(255 * Math.min(1, Math.max(0, share)))];
  return `rgb(${rgba & 255} ${(rgba >> 8) & 255} ${(rgba >> 16) & 255})`;
}

/** Whether text on that colour has to be dark. */
export function isBright(colours: Palette, share: number): boolean {
  const rgba = colours[Math.round(255 * Math.min(1, Math.max(0, share)))];
  return 0.299 * (rgba & 255) + 0.587 * ((rgba >> 8) & 255) + 0.114 * ((rgba >> 16) & 255) > 118;
}
