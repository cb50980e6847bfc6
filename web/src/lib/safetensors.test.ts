import { expect, test } from "vitest";
import { halfToSingle, part, readTrace } from "./safetensors";

/** The number whose 16 bits these are, by moving them to where float32 has them. */
function moved(bits: number): number {
  const view = new DataView(new ArrayBuffer(4));
  const [sign, exponent, fraction] = [bits >> 15, (bits >> 10) & 31, bits & 1023];
  if (exponent === 0) {
    view.setUint32(0, ((127 - 14) << 23) | (fraction << 13)); // 2^-14 (1 + f/1024); without its one: what is below
    return (sign ? -1 : 1) * (view.getFloat32(0) - 2 ** -14);
  }
  view.setUint32(0, ((sign << 31) | ((exponent === 31 ? 255 : exponent + 112) << 23) | (fraction << 13)) >>> 0);
  return view.getFloat32(0);
}

test("all 65,536 halves are read as what they are", () => {
  for (let bits = 0; bits < 65536; bits++) {
    const found = halfToSingle(bits);
    if (!Object.is(found, moved(bits))) expect.fail(`${bits.toString(16)} is ${moved(bits)}, not ${found}`);
  }
});

type Stored = Float32Array | Uint16Array | Uint8Array;
type Written = Record<string, { stored: string; dtype: string; shape: number[]; values: Stored }>;

function trace(tensors: Written, schema = "trace/1"): ArrayBuffer {
  const header: Record<string, object> = {};
  const stored: Record<string, string> = {};
  let end = 0;
  for (const [name, { dtype, shape, values, ...how }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [end, end + values.byteLength] };
    stored[name] = how.stored;
    end += values.byteLength;
  }
  header.__metadata__ = { manifest: JSON.stringify({ schema, stored, said: "两只狗" }) };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + end);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(text, 8);
  let begin = 8 + text.length;
  for (const { values } of Object.values(tensors)) {
    bytes.set(new Uint8Array(values.buffer), begin);
    begin += values.byteLength;
  }
  return bytes.buffer;
}

const WRITTEN: Written = {
  "enc.0.self.attn": { stored: "sqrt_u8", dtype: "U8", shape: [1, 3], values: Uint8Array.of(0, 51, 255) },
  "enc.0.self.q": { stored: "f16", dtype: "F16", shape: [2], values: Uint16Array.of(0x3c00, 0xc500) },
  "enc.0.self.z": { stored: "f32", dtype: "F32", shape: [2, 2], values: Float32Array.of(1.5, -2.25, 1e-30, -1e9) },
};

test("a trace is read in each way in which numbers are stored", () => {
  const { tensors } = readTrace(trace(WRITTEN));
  const read = Object.fromEntries([...tensors].map(([name, { shape, values }]) => [name, [shape, ...values]]));
  expect(read).toEqual({
    "enc.0.self.attn": [[1, 3], 0, Math.fround(0.2 ** 2), 1],
    "enc.0.self.q": [[2], 1, -5],
    "enc.0.self.z": [[2, 2], 1.5, -2.25, Math.fround(1e-30), -1e9],
  });
});

test("its manifest may hold any language", () => {
  expect(readTrace(trace(WRITTEN)).manifest).toMatchObject({ schema: "trace/1", said: "两只狗" });
});

test("a trace without tensors is one", () => {
  expect(readTrace(trace({})).tensors.size).toBe(0);
});

test("a trace of another schema is refused", () => {
  expect(() => readTrace(trace(WRITTEN, "trace/2"))).toThrow("unknown schema trace/2");
});

test("a part is a row along the first dimension", () => {
  const values = Float32Array.from({ length: 24 }, (_, i) => i);
  const found = part({ shape: [2, 3, 4], values }, 1);
  expect(found.shape).toEqual([3, 4]);
  expect([...found.values]).toEqual([...values.slice(12)]);
  expect([...part(found, 2).values]).toEqual([20, 21, 22, 23]);
});
