import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { add, checked, head, largest, mix, rows, scores, softmax, worked, type Head, type Matrix } from "./formula";
import type { Tensor } from "../../lib/safetensors";

const number = fc.double({ min: -9, max: 9, noNaN: true });
const size = fc.integer({ min: 1, max: 7 });

const vector = (length: number) =>
  fc.float64Array({ min: -9, max: 9, noNaN: true, minLength: length, maxLength: length });
const matrix = (count: number, width: number): fc.Arbitrary<Matrix> =>
  fc.array(vector(width), { minLength: count, maxLength: count });

/** A head of T queries and S keys that computed without any error. */
const exact: fc.Arbitrary<Head> = fc.tuple(size, size, size, size).chain(([queries, keys, d_k, d_v]) =>
  fc
    .record({
      q: matrix(queries, d_k),
      k: matrix(keys, d_k),
      v: matrix(keys, d_v),
      bias: fc.oneof(matrix(1, keys), matrix(queries, keys)),
    })
    .map(({ q, k, v, bias }) => {
      const score = scores(q, k);
      const attn = add(score, bias).map(softmax);
      return { q, k, v, score, bias, attn, z: mix(attn, v) };
    }),
);

describe("softmax", () => {
  test("gives weights that sum to 1, in the order of the scores", () => {
    fc.assert(
      fc.property(size.chain(vector), (row) => {
        const weights = softmax(row);
        expect(weights.reduce((a, b) => a + b)).toBeCloseTo(1, 12);
        row.forEach((x, i) => row.forEach((y, j) => x > y && expect(weights[i]).toBeGreaterThanOrEqual(weights[j])));
      }),
    );
  });

  test("does not change when all scores move by the same", () => {
    fc.assert(
      fc.property(size.chain(vector), fc.double({ min: -1000, max: 1000, noNaN: true }), (row, shift) => {
        const moved = softmax(row.map((x) => x + shift));
        softmax(row).forEach((weight, i) => expect(moved[i]).toBeCloseTo(weight, 10));
      }),
    );
  });

  test("is 1 / (1 + e^-x) for two scores", () => {
    fc.assert(
      fc.property(number, (x) => {
        expect(softmax(Float64Array.of(x, 0))[0]).toBeCloseTo(1 / (1 + Math.exp(-x)), 12);
      }),
    );
  });

  test("gives nothing to what a mask hides", () => {
    expect([...softmax(Float64Array.of(3, -1e9, 3, -1e9 + 7))]).toEqual([0.5, 0, 0.5, 0]);
  });
});

test("scores are those of a triple loop", () => {
  const shapes = fc.tuple(size, size, size);
  const pairs = shapes.chain(([queries, keys, width]) => fc.tuple(matrix(queries, width), matrix(keys, width)));
  fc.assert(
    fc.property(pairs, ([q, k]) => {
      const found = scores(q, k);
      for (let i = 0; i < q.length; i++) {
        for (let j = 0; j < k.length; j++) {
          let sum = 0;
          for (let c = 0; c < q[i].length; c++) sum += q[i][c] * k[j][c];
          expect(found[i][j]).toBeCloseTo(sum * q[i].length ** -0.5, 10);
        }
      }
    }),
  );
});

test("weights that choose one key give its value", () => {
  const chosen = fc
    .tuple(size, size, size)
    .chain(([queries, keys, width]) =>
      fc.tuple(matrix(keys, width), fc.array(fc.nat(keys - 1), { minLength: queries, maxLength: queries })),
    );
  fc.assert(
    fc.property(chosen, ([v, places]) => {
      const weights = places.map((place) => Float64Array.from(v, (_, j) => (j === place ? 1 : 0)));
      mix(weights, v).forEach((row, i) => row.forEach((x, c) => expect(x).toBeCloseTo(v[places[i]][c], 12)));
    }),
  );
});

describe("checked", () => {
  test("finds nothing in a head without an error", () => {
    fc.assert(
      fc.property(exact, (right) => {
        expect(checked(right)).toEqual({ score: 0, attn: 0, z: 0 });
      }),
    );
  });

  test("finds a planted error, in the step where it is", () => {
    const places = fc.constantFrom<"score" | "attn" | "z">("score", "attn", "z");
    fc.assert(
      fc.property(
        exact,
        places,
        fc.double({ min: 0.001, max: 5, noNaN: true }),
        fc.nat(),
        fc.nat(),
        (right, place, by, i, j) => {
          const wrong = right[place].map((row) => row.slice());
          const row = wrong[i % wrong.length];
          row[j % row.length] += by;
          expect(checked({ ...right, [place]: wrong })[place]).toBeCloseTo(by, 10);
        },
      ),
    );
  });
});

test("the way of one query leads to what its head has read", () => {
  fc.assert(
    fc.property(exact, fc.nat(), (right, number) => {
      const query = number % right.q.length;
      const way = worked(right, query);
      const width = Math.sqrt(right.q[0].length);
      way.dots.forEach((x, j) => expect(x / width).toBeCloseTo(way.scores[j], 10));
      softmax(way.sums).forEach((weight, j) => expect(weight).toBeCloseTo(way.weights[j], 12));
      way.z.forEach((x, c) => expect(way.parts.reduce((sum, row) => sum + row[c], 0)).toBeCloseTo(x, 10));
    }),
  );
});

test("one row of bias counts for every query", () => {
  const sum = add([Float64Array.of(1, 2), Float64Array.of(3, 4)], [Float64Array.of(10, 20)]);
  expect(sum.map((row) => [...row])).toEqual([
    [11, 22],
    [13, 24],
  ]);
});

test("the tensors of a block become the matrices of its head", () => {
  const tensor = (...shape: number[]): Tensor => ({
    shape,
    values: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => i),
  });
  const places = {
    q: [1, 2, 3],
    k: [1, 5, 3],
    v: [1, 5, 7],
    score: [1, 2, 5],
    bias: [1, 1, 5],
    attn: [1, 2, 5],
    z: [1, 2, 7],
  };
  const tensors = Object.entries(places).map(([place, shape]) => [`dec.1.cross.${place}`, tensor(...shape)] as const);
  const found = head(new Map(tensors), "dec.1.cross");
  expect(Object.values(found).map((matrix: Matrix) => [1, matrix.length, matrix[0].length])).toEqual(
    Object.values(places),
  );
  expect([...found.k[1]]).toEqual([3, 4, 5]);
  expect([...rows(tensor(2, 3))[1]]).toEqual([3, 4, 5]);
});

test("the largest number counts without its sign", () => {
  expect(largest([Float64Array.of(1, -3), Float64Array.of(2, 0)])).toBe(3);
  expect(largest([])).toBe(0);
});
