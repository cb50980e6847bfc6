// The format that traces have on the wire, on disk and in an exported page: a length, a JSON header, one buffer.

export interface Tensor {
  shape: number[];
  values: Float32Array;
}

export interface TraceFile {
  tensors: Map<string, Tensor>;
  manifest: Manifest;
}

interface Manifest {
  schema: string;
  stored: Record<string, keyof typeof DECODE>;
}

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

// How each way of storing numbers (heedful/inspector/capture/stored.py) is read back.
const DECODE = {
  f32: (bytes: ArrayBuffer) => new Float32Array(bytes),
  f16: (bytes: ArrayBuffer) => Float32Array.from(new Uint16Array(bytes), halfToSingle),
  sqrt_u8: (bytes: ArrayBuffer) => Float32Array.from(new Uint8Array(bytes), (b) => (b / 255) ** 2),
};

export function halfToSingle(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

export function readTrace(buffer: ArrayBuffer): TraceFile {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const manifest: Manifest = JSON.parse(header.__metadata__.manifest);
  if (manifest.schema !== "trace/1") throw new Error(`unknown schema ${manifest.schema}`);
  const tensors = new Map<string, Tensor>();
  for (const [name, entry] of Object.entries(header) as [string, Entry][]) {
    if (name === "__metadata__") continue;
    const [begin, end] = entry.data_offsets.map((offset) => 8 + length + offset);
    tensors.set(name, { shape: entry.shape, values: DECODE[manifest.stored[name]](buffer.slice(begin, end)) });
  }
  return { tensors, manifest };
}

/** Row `index` along the first dimension. */
export function part(tensor: Tensor, index: number): Tensor {
  const shape = tensor.shape.slice(1);
  const size = shape.reduce((a, b) => a * b, 1);
  return { shape, values: tensor.values.subarray(index * size, (index + 1) * size) };
}
