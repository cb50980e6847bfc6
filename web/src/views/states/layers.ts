// Which recurrent layers a look has recorded, and what of each.

/** A recurrent layer: of the encoder or the decoder, counted from 0. */
export interface Layer {
  stack: "enc" | "dec";
  number: number;
}

const STATE = /^(enc|dec)\.(\d+)\.(hidden|\w+_gate)$/;

/** The names of states and gates among those of all tensors. */
export function statesIn(names: string[]): string[] {
  return names.filter((name) => STATE.test(name));
}

export function layersOf(names: string[]): Layer[] {
  return names
    .filter((name) => STATE.test(name) && name.endsWith(".hidden"))
    .map((name) => {
      const [, stack, number] = STATE.exec(name)!;
      return { stack: stack as Layer["stack"], number: Number(number) };
    });
}

/** The last part of the names of what was recorded of a layer: the hidden state first, then its gates. */
export function kindsOf(names: string[], { stack, number }: Layer): string[] {
  return statesIn(names)
    .filter((name) => name.startsWith(`${stack}.${number}.`))
    .map((name) => STATE.exec(name)![3]);
}
