/** The real PostgreSQL, with a harness that reads its tables by a separate connection. */
import { randomBytes } from "node:crypto"
import type { Broker as Server } from "@requeue/brokers"
import { Harness } from "@requeue/conformance"
import { Broker, type Delivery } from "@requeue/core"
import { SqlMessage } from "@requeue/kit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Client } from "pg"
import { PostgresBroker, type PostgresOptions } from "../../src/index.ts"
import { query } from "../../src/internal/client.ts"
import { faulty, install } from "./faults.ts"

/** A connection that lasts as long as the scope. */
const client = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const opened = new Client(url)
      // The server is restarted.
      opened.on("error", () => {})
      await opened.connect()
      return opened
    }),
    (opened) => Effect.promise(() => opened.end())
  )

/** Milliseconds of this machine, which is also the server's. */
const now = "floor(extract(epoch FROM clock_timestamp()) * 1000)"

export const layer = (server: Server, options: PostgresOptions.Options = {}) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const [node] = server.nodes
      const schema = `conformance_${randomBytes(8).toString("hex")}`
      const between = yield* Effect.acquireRelease(
        Effect.promise(() => faulty(node!.port)),
        ({ close }) => Effect.promise(close)
      )
      const url = server.url.replace(`:${node!.port}/`, `:${between.port}/`)
      const open = PostgresBroker.make({ url, schema, ...options })
      const broker = yield* open
      /** A connection of the harness. The server may have been restarted since the last one. */
      const sql = <A>(run: (own: Client) => Promise<A>) =>
        Effect.scoped(Effect.flatMap(client(server.url), (own) => Effect.promise(() => run(own))))
      yield* sql((own) => own.query(`${install(schema)} CREATE TABLE ${schema}.mine (row text)`))
      let queues = 0

      const pending = (queue: string) =>
        sql(async (own) => {
          const { rows } = await own.query<{ ready: string; held: string; delayed: string }>(
            `SELECT count(*) FILTER (WHERE leased BETWEEN 0 AND ${now} AND at <= ${now}) AS ready,
               count(*) FILTER (WHERE leased >= ${now}) AS held,
               count(*) FILTER (WHERE leased = 0 AND at > ${now}) AS delayed
             FROM ${schema}.message WHERE queue = $1`,
            [queue]
          )
          const { delayed, held, ready } = rows[0]!
          return { ready: Number(ready), inFlight: Number(held), delayed: Number(delayed) }
        })

      const deadLetters = (queue: string) =>
        sql(async (own) => {
          const { rows } = await own.query<Array<unknown>>(
            query(
              `SELECT seq, token, deliveries + 1, at, metadata, headers, body, key, lane, position, fair_by FROM ${schema}.message
               WHERE queue = $1 AND leased = 0 AND at <= ${now} ORDER BY at, seq`,
              [queue]
            ) as never // The types of pg lack parsers without a format.
          )
          return rows.map(
            (row): Delivery.Delivery => ({
              ...SqlMessage.toDelivery(SqlMessage.fromColumns(row), "postgres"),
              receipt: undefined
            })
          )
        })

      const begin = Effect.gen(function* () {
        const own = yield* client(server.url)
        yield* Effect.promise(() => own.query("BEGIN"))
        const run = (text: string, values: ReadonlyArray<string> = []) =>
          Effect.tryPromise(() => own.query(text, [...values]))
        return {
          value: own,
          write: (row: string) => run(`INSERT INTO ${schema}.mine VALUES ($1)`, [row]),
          commit: run("COMMIT"),
          rollback: run("ROLLBACK")
        }
      })

      const harness = Harness.Harness.of({
        name: `postgres ${server.version}`,
        uniqueQueue: (base) =>
          sql(async (own) => {
            const name = `${base}-${++queues}`
            await own.query(`INSERT INTO ${schema}.queue VALUES ($1)`, [name])
            return name
          }),
        publishRaw: (queue, body, headers) =>
          sql((own) =>
            own.query(`INSERT INTO ${schema}.message (queue, headers, body) VALUES ($1, $2, $3)`, [
              queue,
              JSON.stringify(headers),
              Buffer.from(body)
            ])
          ),
        deadLetters,
        pending,
        cutConnections: Effect.sync(between.cut),
        restart: Effect.promise(server.restart),
        crash: Effect.andThen(
          Effect.promise(async () => {
            await server.kill()
            await server.start()
          }),
          open
        ),
        // The file system keeps what was written and not synced.
        powerCut: undefined,
        another: open,
        failNext: between.failNext(sql, schema),
        deleteQueue: (queue) =>
          sql(async (own) => {
            await own.query(`DELETE FROM ${schema}.message WHERE queue = $1`, [queue])
            await own.query(`DELETE FROM ${schema}.queue WHERE name = $1`, [queue])
          }),
        foreignQueue: undefined,
        transactions: {
          begin,
          rows: sql(async (own) => {
            const { rows } = await own.query<{ row: string }>(`SELECT row FROM ${schema}.mine`)
            return rows.map(({ row }) => row)
          })
        },
        lateness: 50,
        settleTime: 50
      })
      return Context.make(Broker.Broker, broker).pipe(Context.add(Harness.Harness, harness))
    })
  )
