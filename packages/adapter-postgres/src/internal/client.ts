/** The driver. Only this file imports it. */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import { TlsOptions } from "@requeue/kit"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import { Client, types } from "pg"
import type { Address } from "../PostgresOptions.ts"

export type Value = string | number | boolean | null | Uint8Array | ReadonlyArray<string | number | boolean | null>

export type Row = ReadonlyArray<unknown>

/** A query for a connection of `pg` that returns rows as arrays. */
export interface Query {
  readonly text: string
  readonly values: Array<Value>
  readonly rowMode: "array"
  readonly types: { readonly getTypeParser: (type: number) => (text: string) => unknown }
}

/** A connection to the server. */
export interface Session {
  readonly query: (text: string, values: ReadonlyArray<Value>) => Promise<ReadonlyArray<Row>>
  /**
   * Like `query`, but the server keeps the statement's plan, which takes as long as a small statement itself. For statements whose
   * best plan never changes: that of one which searches in a table is bad once the table has grown.
   */
  readonly prepared: Session["query"]
  /** Runs statements without values. */
  readonly run: (text: string) => Promise<void>
  readonly isOpen: () => boolean
  /** Resolves once the connection has ended. */
  readonly ended: Promise<void>
  /** The id of the server's process, which notifications carry. */
  readonly process: number | undefined
  /** Ends the connection after the running query. */
  readonly close: () => Promise<void>
  /** Breaks the connection. */
  readonly destroy: () => void
}

/** The platform, which tests replace. */
export interface Driver {
  readonly connect: (
    address: Address,
    timeout: number,
    onNotification: (payload: string, process: number) => void
  ) => Promise<Session>
  /** Calls back once the current turn of the event loop has gathered its work. */
  readonly soon: (run: () => void) => void
}

const bytes = types.getTypeParser(types.builtins.BYTEA, "text")
const text = (value: string): string => value

/**
 * Parsers of bytea, booleans, and integers, which the tables keep small enough. Other values are text, whatever the program has set
 * for `pg`.
 */
const parsers: Readonly<Record<number, (text: string) => unknown>> = {
  16: (value) => value === "t",
  17: bytes,
  20: Number,
  23: Number
}

/** Returns a query. */
export const query = (statement: string, values: ReadonlyArray<Value>): Query => ({
  text: statement,
  // The driver also accepts other views of bytes, but copies them.
  values: values.map((value) =>
    value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.length) : value
  ),
  rowMode: "array",
  types: { getTypeParser: (type) => parsers[type] ?? text }
})

const names = new Map<string, string>()

/** The name of a prepared statement: the same name is the same text on each connection behind a pooler. */
const nameOf = (statement: string): string => {
  const name = names.get(statement) ?? createHash("sha256").update(statement).digest("hex").slice(0, 32)
  names.set(statement, name)
  return name
}

/**
 * Whether the connection cannot keep prepared statements, because a pooler runs each statement on another one. Nothing happened.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const isUnprepared = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && (cause.code === "26000" || cause.code === "42P05")

/** A function, because the driver searches for another password if this one is empty. */
const passwordOf =
  ({ password }: Address) =>
  (): string | Promise<string> =>
    typeof password === "function" ? password() : password === undefined ? "" : Redacted.value(password)

const connect: Driver["connect"] = async (address, timeout, onNotification) => {
  const { database, host, port, tls, user } = address
  const client = new Client({
    database,
    host,
    port,
    user,
    password: passwordOf(address),
    ssl: tls === undefined ? false : TlsOptions.toNode(tls, (path) => fs.readFileSync(path)),
    connectionTimeoutMillis: timeout,
    keepAlive: true,
    application_name: "requeue"
  })
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  let isOpen = true
  const end = (): void => {
    isOpen = false
    resolve()
  }
  // An error of an idle connection. A query throws its errors.
  client.on("error", end)
  client.on("end", end)
  client.on("notification", ({ payload = "", processId }) => onNotification(payload, processId))
  try {
    await client.connect()
  } catch (error) {
    void client.end().catch(() => undefined)
    throw error
  }
  const run = async (each: Query & { readonly name?: string }): Promise<ReadonlyArray<Row>> =>
    (await client.query<Array<unknown>>(each as never)).rows // Its type lacks `getTypeParser` without a format.
  let isPreparing = true
  return {
    query: (statement, values) => run(query(statement, values)),
    prepared: async (statement, values) => {
      const each = query(statement, values)
      try {
        return await run(isPreparing ? { ...each, name: nameOf(statement) } : each)
      } catch (cause) {
        if (!isPreparing || !isUnprepared(cause)) throw cause
        isPreparing = false
        return run(each)
      }
    },
    run: async (statement) => void (await client.query(statement)),
    isOpen: () => isOpen,
    ended,
    process: Reflect.get(client, "processID"),
    close: () => client.end(),
    destroy: () => {
      end()
      // With a running query, this ends the socket immediately.
      void client.end().catch(() => undefined)
    }
  }
}

export const pg: Driver = {
  connect,
  // oxlint-disable-next-line no-restricted-globals -- the end of a turn, which gathers the sends of many sockets
  soon: (run) => void setImmediate(run)
}
