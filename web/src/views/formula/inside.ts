// What one head computes, and what is around it: the vectors that come in, the other heads, and what goes out.

import { head as inner, rows, type Head, type Matrix } from "./formula";
import { part } from "../../lib/safetensors";
import { session } from "../../lib/session.svelte";
import { NotHere } from "../../lib/source";
import type { Block, Look } from "../../lib/types";

export interface Around {
  queries: Matrix;
  keys: Matrix;
  /** What each head has read. */
  read: Matrix[];
  out: Matrix;
}

export interface Inside {
  block: Block;
  number: number;
  head: Head;
  /** Null where it is not there. */
  around: Around | null;
}

export async function inside(look: Look, block: Block, number: number): Promise<Inside> {
  const head = inner(await session.head({ block: block.name, number }), block.name);
  return { block, number, head, around: await around(look, block.name).catch(missing) };
}

async function around(look: Look, block: string): Promise<Around> {
  const queries = `${block}.${look.model.norm === "pre" ? "norm" : "in"}`;
  const keys = block.endsWith(".cross") ? "enc.norm" : queries;
  const tensors = await session.tensors([...new Set([queries, keys, `${block}.z`, `${block}.out`])]);
  const of = (name: string) => rows(tensors.get(name)!);
  const z = tensors.get(`${block}.z`)!;
  return {
    queries: of(queries),
    keys: of(keys),
    read: Array.from({ length: z.shape[0] }, (_, head) => rows(part(z, head))),
    out: of(`${block}.out`),
  };
}

function missing(error: unknown): null {
  if (error instanceof NotHere) return null;
  throw error;
}
