/** A server, and for each test a schema with two connections of Requeue and one of the driver. */
import { type Broker as Server, start } from "@requeue/brokers"
import { Wait } from "@requeue/conformance"
import { connect, type Requeue } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { Client } from "pg"
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest"
import { adapter } from "../../src/index.ts"

export let server: Server
export let here: Requeue
export let there: Requeue
export let client: Client
export let schema: string

/** Opens them for the tests of a file. `name`: what the names of its schemas begin with. */
export const open = (name: string): void => {
  let schemas = 0
  const requeue = (): Promise<Requeue> =>
    connect({ url: server.url, schema, lease: 5000 }, { adapters: [adapter], logger: false })

  beforeAll(async () => {
    server = await start("postgres", { parameters: { fsync: "off" } })
  })

  afterAll(() => server.dispose())

  beforeEach(async () => {
    schema = `${name}_${++schemas}`
    here = await requeue()
    there = await requeue()
    client = new Client(server.url)
    await client.connect()
  })

  afterEach(async () => {
    await client.end()
    await here.close()
    await there.close()
  })
}

export const until = (what: string, holds: () => boolean | Promise<boolean>): Promise<void> =>
  Effect.runPromise(Wait.until(what, async () => holds()))
