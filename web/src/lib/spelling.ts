// From pieces to text.

/** The text of pieces: "▁" is a space, and bytes that have no sign of their own stand as <0xE4>. */
export function spelled(pieces: string[]): string {
  const bytes = (run: string) => Uint8Array.from(run.match(/[0-9A-F]{2}(?=>)/g)!, (byte) => parseInt(byte, 16));
  const text = pieces.join("").replaceAll("▁", " ");
  return text.replace(/(<0x[0-9A-F]{2}>)+/g, (run) => new TextDecoder().decode(bytes(run))).trimStart();
}
