/**
 * A handler's row, its message and its ack in one transaction of each library: all of them after a commit, none after a rollback.
 * A value that is not an open transaction is refused.
 */
import { type Broker as Server, start } from "@requeue/brokers"
import { BrokerError, connect, constant, type Requeue } from "@requeue/core/promise"
import { PgClient } from "@effect/sql-pg"
import { sql as drizzleSql } from "drizzle-orm"
import { drizzle } from "drizzle-orm/node-postgres"
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import knex from "knex"
import { CamelCasePlugin, Kysely, PostgresDialect, sql as kyselySql } from "kysely"
import { Client, Pool } from "pg"
import { PrismaPg } from "@prisma/adapter-pg"
import { getPrismaClient } from "@prisma/client/runtime/client"
import postgres from "postgres"
import { afterAll, assert, beforeAll, describe, test } from "vitest"
import { adapter } from "../../src/index.ts"

/** What a handler does in a transaction. */
type Run = (transaction: unknown, write: (row: string) => Promise<unknown>) => Promise<void>

interface Library {
  readonly transaction: (run: Run) => Promise<unknown>
  /** Runs statements without a transaction. Default: the library has no such value. */
  readonly outside?: unknown
  readonly close: () => Promise<unknown>
}

const insert = "INSERT INTO mine (row) VALUES"

/** The part of Prisma's transactions that programs use for SQL. */
interface PrismaTransaction {
  readonly $executeRawUnsafe: (sql: string, ...values: ReadonlyArray<unknown>) => Promise<unknown>
}

interface WithWebAssembly {
  readonly WebAssembly: { readonly Module: new (bytes: Uint8Array) => unknown }
}

/** Prisma's client, as it generates one for a schema without models. */
const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: "7.10.0",
  engineVersion: "",
  activeProvider: "postgresql",
  inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: "AAAAAAAAAAAAAAAA" },
  compilerWasm: {
    getRuntime: () => import("@prisma/client/runtime/query_compiler_fast_bg.postgresql.mjs"),
    getQueryCompilerWasmModule: async () => {
      const { wasm } = await import("@prisma/client/runtime/query_compiler_fast_bg.postgresql.wasm-base64.mjs")
      const { WebAssembly } = globalThis as unknown as WithWebAssembly // The types of Node lack it.
      return new WebAssembly.Module(Buffer.from(wasm, "base64"))
    },
    importName: "./query_compiler_fast_bg.js"
  }
})

const libraries: Readonly<Record<string, (url: string) => Library>> = {
  pg: (url) => {
    const pool = new Pool({ connectionString: url })
    return {
      transaction: async (run) => {
        const client = await pool.connect()
        try {
          await client.query("BEGIN")
          await run(client, (row) => client.query(`${insert} ($1)`, [row]))
          await client.query("COMMIT")
        } catch (error) {
          await client.query("ROLLBACK")
          throw error
        } finally {
          client.release()
        }
      },
      outside: pool,
      close: () => pool.end()
    }
  },
  "postgres.js": (url) => {
    const sql = postgres(url)
    return {
      transaction: (run) => sql.begin((tx) => run(tx, async (row) => tx`INSERT INTO mine (row) VALUES (${row})`)),
      outside: sql,
      close: () => sql.end()
    }
  },
  "Drizzle on pg": (url) => {
    const pool = new Pool({ connectionString: url })
    const db = drizzle({ client: pool })
    return {
      transaction: (run) =>
        db.transaction((tx) => run(tx, async (row) => tx.execute(drizzleSql`INSERT INTO mine (row) VALUES (${row})`))),
      outside: db,
      close: () => pool.end()
    }
  },
  "Drizzle on postgres.js": (url) => {
    const client = postgres(url)
    const db = drizzleOnPostgresJs({ client })
    return {
      transaction: (run) =>
        db.transaction((tx) => run(tx, async (row) => tx.execute(drizzleSql`INSERT INTO mine (row) VALUES (${row})`))),
      outside: db,
      close: () => client.end()
    }
  },
  Kysely: (url) => {
    const db = new Kysely<unknown>({
      dialect: new PostgresDialect({ pool: new Pool({ connectionString: url }) }),
      plugins: [new CamelCasePlugin()]
    })
    return {
      transaction: (run) =>
        db
          .transaction()
          .execute((tx) => run(tx, (row) => kyselySql`INSERT INTO mine (row) VALUES (${row})`.execute(tx))),
      outside: db,
      close: () => db.destroy()
    }
  },
  Knex: (url) => {
    const db = knex({ client: "pg", connection: url })
    return {
      transaction: (run) => db.transaction((tx) => run(tx, async (row) => tx("mine").insert({ row }))),
      outside: db,
      close: () => db.destroy()
    }
  },
  Prisma: (url) => {
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
    return {
      transaction: (run) =>
        prisma.$transaction((tx: PrismaTransaction) => run(tx, (row) => tx.$executeRawUnsafe(`${insert} ($1)`, row))),
      outside: prisma,
      close: () => prisma.$disconnect()
    }
  },
  "Effect's SqlClient": (url) => {
    const runtime = ManagedRuntime.make(PgClient.layer({ url: Redacted.make(url) }))
    return {
      transaction: (run) =>
        runtime.runPromise(
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const inTransaction = Effect.gen(function* () {
              const services = yield* Effect.context()
              const write = (row: string) =>
                Effect.runPromiseWith(services)(sql`INSERT INTO mine (row) VALUES (${row})`)
              const transaction = yield* sql.transactionService
              yield* Effect.promise(() => run(transaction, write))
            })
            yield* sql.withTransaction(inTransaction as Effect.Effect<void>) // It provides the service.
          })
        ),
      close: () => runtime.dispose()
    }
  }
}

let server: Server
let admin: Client
let schemas = 0

beforeAll(async () => {
  server = await start("postgres", { parameters: { fsync: "off" } })
  admin = new Client(server.url)
  await admin.connect()
  await admin.query("CREATE TABLE mine (row text)")
})

afterAll(async () => {
  await admin.end()
  await server.dispose()
})

const rows = async (): Promise<ReadonlyArray<string>> => {
  const { rows: found } = await admin.query<{ row: string }>("SELECT row FROM mine")
  return found.map(({ row }) => row)
}

/** The error of a send in a transaction. */
const refusal = async (requeue: Requeue, value: unknown): Promise<BrokerError> => {
  // A value that is no transaction is refused before there is a promise.
  const error: unknown = await (async () => requeue.within(value).send("receipts", {}))().catch(
    (cause: unknown) => cause
  )
  assert.instanceOf(error, BrokerError)
  return error
}

describe.each(Object.entries(libraries))("%s", (_, open) => {
  test("a transaction has a row, a message and the ack", async () => {
    await admin.query("DELETE FROM mine")
    const requeue = await connect(
      { url: server.url, schema: `libraries_${++schemas}` },
      { adapters: [adapter], logger: false }
    )
    const library = open(server.url)
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const text = 'ü "$1" ? :a'
    let last: unknown
    const before: Array<unknown> = []
    await requeue.consume("payments", { retry: { maxRetries: 1, backoff: constant(0) } }, async (message) => {
      await library.transaction(async (transaction, write) => {
        last = transaction
        await message.within(transaction)
        await write(message.id)
        await requeue.within(transaction).sendBatch("receipts", [
          { body: text, headers: { a: text } },
          { body: "2", delay: 100_000 }
        ])
        before.push([await rows(), (await requeue.counts("receipts")).ready])
        if (message.attempts === 1) throw new Error("rolls back")
      })
      resolve()
    })
    await requeue.send("payments", { amount: 5 }, { id: "p1" })
    await ended
    assert.deepStrictEqual(before, [
      [[], 0],
      [[], 0]
    ])
    assert.deepStrictEqual(await rows(), ["p1"])
    const { delayed, ready } = await requeue.counts("receipts")
    assert.deepStrictEqual([ready, delayed], [1, 1])
    const receipt = Promise.withResolvers<unknown>()
    await requeue.consume("receipts", {}, ({ body, headers }) => receipt.resolve([body, headers["a"]]))
    assert.deepStrictEqual(await receipt.promise, [text, text])

    assert.match((await refusal(requeue, last)).message, /Unsupported: no transaction is open\. Begin it before/)
    if (library.outside !== undefined) {
      const { reason, remedy } = await refusal(requeue, library.outside)
      assert.strictEqual(reason, "Unsupported")
      assert.match(String(remedy), /Pass the value that your library passes|Begin it before/)
    }
    // The server refuses NUL in a text.
    const aborted = library.transaction(async (transaction, write) => {
      await write("\0").catch(() => undefined)
      assert.match((await refusal(requeue, transaction)).message, /can only be rolled back/)
      throw new Error("rolls back")
    })
    assert.match(String(await aborted.catch((error: unknown) => error)), /rolls back/)
    await library.close()
    await requeue.close()
  })
})
