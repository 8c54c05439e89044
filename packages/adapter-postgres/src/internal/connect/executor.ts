/** Runs statements in a program's own transaction, which it recognises by its shape: the program's copy of `pg` may be another one. */
import * as Predicate from "effect/Predicate"
import { type Query, query, type Row, type Value } from "../client.ts"

export interface Executor {
  /** The connection, which outlives the transaction. */
  readonly connection: object
  readonly query: (text: string, values: ReadonlyArray<Value>) => Promise<ReadonlyArray<Row>>
  /** Runs a statement without values. */
  readonly run: (text: string) => Promise<unknown>
}

interface Client {
  readonly query: (query: Query | string) => Promise<{ readonly rows: ReadonlyArray<Row> }>
}

/** A connection of `pg`, and no pool, each of whose queries may use another connection. */
const isClient = (value: unknown): value is Client =>
  Predicate.hasProperty(value, "query") &&
  typeof value.query === "function" &&
  Predicate.hasProperty(value, "connectionParameters")

/** Returns what runs statements in a transaction; `undefined` for any other value. */
export const of = (value: unknown): Executor | undefined =>
  isClient(value)
    ? {
        connection: value,
        query: async (text, values) => (await value.query(query(text, values))).rows,
        run: (text) => value.query(text)
      }
    : undefined
