/**
 * Runs statements in a program's own transaction, which it recognises by its shape: no library is imported.
 *
 * - `node:sqlite`: the connection, between BEGIN and COMMIT. Synchronous.
 * - Drizzle: its transaction, by the connection inside. Synchronous.
 * - Kysely, Knex: their transactions. Asynchronous.
 */
import * as Predicate from "effect/Predicate"

export type Value = string | number | null | Uint8Array

export type Rows = ReadonlyArray<object>

export interface Executor {
  /** A connection that outlives the transaction; `undefined`: only the transaction is known. */
  readonly connection: object | undefined
  /** Whether a transaction is open, as far as the library shows. A statement in one that has ended fails. */
  readonly isOpen: () => boolean
  /** Runs a statement and returns its rows. Each statement must return rows: no library counts changes as another does. */
  readonly all: (sql: string, values: ReadonlyArray<Value>) => Rows | PromiseLike<Rows>
}

interface Statement {
  readonly all: (...values: ReadonlyArray<Value>) => Rows
}

/**
 * A connection of `node:sqlite`, which has `isTransaction` and throws for it when closed, or of better-sqlite3, which has
 * `inTransaction`: it is recognised for the error that says why it is refused.
 */
interface Connection {
  readonly prepare: (sql: string) => Statement
  readonly isOpen?: boolean
  readonly isTransaction?: boolean
  readonly inTransaction?: boolean
}

interface Kysely {
  readonly isTransaction: boolean
  readonly executeQuery: (query: object) => PromiseLike<{ readonly rows: Rows }>
}

interface Knex {
  readonly isTransaction?: boolean
  readonly isCompleted?: () => boolean
  readonly raw: (sql: string, values: ReadonlyArray<Value>) => PromiseLike<Rows>
}

const hasMethod = (value: unknown, name: string): boolean =>
  Predicate.hasProperty(value, name) && typeof value[name] === "function"

const isConnection = (value: unknown): value is Connection =>
  hasMethod(value, "prepare") && Predicate.isObject(value) && ("isTransaction" in value || "inTransaction" in value)

const isKysely = (value: unknown): value is Kysely =>
  hasMethod(value, "executeQuery") && Predicate.hasProperty(value, "isTransaction")

const isKnex = (value: unknown): value is Knex => typeof value === "function" && hasMethod(value, "raw")

/**
 * Compiled statements. A connection that was closed and opened again has lost its own. Weak, because a statement of `node:sqlite` keeps
 * its connection alive.
 */
const statements = new WeakMap<Connection, Map<string, WeakRef<Statement>>>()

const prepared = (connection: Connection, sql: string): Statement => {
  const all = statements.get(connection) ?? new Map<string, WeakRef<Statement>>()
  const known = all.get(sql)?.deref()
  if (known !== undefined) return known
  const statement = connection.prepare(sql)
  statements.set(connection, all.set(sql, new WeakRef(statement)))
  return statement
}

const ofConnection = (connection: Connection): Executor => ({
  connection,
  isOpen: () => connection.isOpen !== false && (connection.isTransaction === true || connection.inTransaction === true),
  all: (sql, values) => {
    try {
      return prepared(connection, sql).all(...values)
    } catch (error) {
      statements.delete(connection)
      throw error
    }
  }
})

/** A query as Kysely compiles it from a template without parts. */
const compiled = (sql: string, parameters: ReadonlyArray<Value>) => ({
  sql,
  parameters,
  query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
  queryId: { queryId: "requeue" }
})

const ofKysely = (kysely: Kysely): Executor => ({
  connection: undefined,
  isOpen: () => kysely.isTransaction,
  all: async (sql, values) => (await kysely.executeQuery(compiled(sql, values))).rows
})

const ofKnex = (knex: Knex): Executor => ({
  connection: undefined,
  isOpen: () => knex.isTransaction === true && knex.isCompleted?.() === false,
  all: (sql, values) => knex.raw(sql, values)
})

/** The connection inside a transaction of Drizzle. */
const inner = (value: unknown): unknown =>
  Predicate.hasProperty(value, "session") && Predicate.hasProperty(value.session, "client")
    ? value.session.client
    : undefined

/** Returns what runs statements in a transaction; `undefined` for any other value. */
export const of = (value: unknown): Executor | undefined => {
  if (isConnection(value)) return ofConnection(value)
  if (isKysely(value)) return ofKysely(value)
  if (isKnex(value)) return ofKnex(value)
  const connection = inner(value)
  return isConnection(connection) ? ofConnection(connection) : undefined
}
