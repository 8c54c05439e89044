/** The adapter and its server: schema, permissions, timeouts, lost connections. */
import { type Broker as Server, start } from "@requeue/brokers"
import { Wait } from "@requeue/conformance"
import { type BrokerError } from "@requeue/core"
import { connect, constant, type Requeue } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe, test, vi } from "vitest"
import { adapter, PostgresOptions, PostgresSchema } from "../../src/index.ts"
import { open as openBroker } from "../../src/internal/broker.ts"
import { type Driver, pg } from "../../src/internal/client.ts"
import * as Statements from "../../src/internal/statements.ts"

let server: Server
let admin: Client
let schemas = 0

beforeAll(async () => {
  // Tests restart it.
  vi.stubEnv("REQUEUE_POSTGRES_URL", "")
  server = await start("postgres", { parameters: { fsync: "off" } })
  admin = await client()
})

afterAll(async () => {
  await admin.end()
  await server.dispose()
})

const client = async (url = server.url): Promise<Client> => {
  const opened = new Client(url)
  opened.on("error", () => {})
  await opened.connect()
  return opened
}

const fresh = (): string => `server_${++schemas}`

/** Opens a broker. Without a wait, a connection that fails is reported immediately. */
const open = ({ url = server.url, ...options }: PostgresOptions.Options, waitForBroker = 0): Promise<Requeue> =>
  connect({ url: String(url), ...options }, { adapters: [adapter], logger: false, waitForBroker })

const until = (what: string, holds: () => boolean | Promise<boolean>): Promise<void> =>
  Effect.runPromise(Wait.until(what, async () => holds()))

/** The error of a call that must fail. */
const errorOf = async (call: Promise<unknown>): Promise<BrokerError.BrokerError> => {
  const error: unknown = await call.then(
    () => undefined,
    (cause: unknown) => cause
  )
  assert.strictEqual((error as Error | undefined)?.name, "BrokerError", String(error))
  return error as BrokerError.BrokerError // By its name.
}

/** The URL of another role or database. */
const urlOf = (change: (url: URL) => void): string => {
  const url = new URL(server.url)
  change(url)
  return url.href
}

/** Creates a role, and returns its URL. */
const role = async (name: string, settings = ""): Promise<string> => {
  await admin.query(`CREATE ROLE ${name} LOGIN PASSWORD 'pw'; ${settings}`)
  return urlOf((url) => Object.assign(url, { username: name, password: "pw" }))
}

/** Creates a schema without the steps after version 2. */
const createVersion2 = async (schema: string): Promise<void> => {
  await admin.query(PostgresSchema.migration(schema).replaceAll(/IF had <= [23] /g, "IF false "))
  await admin.query(`UPDATE ${schema}.version SET version = 2`)
}

test("a connection whose server lost a prepared statement runs it unprepared", async () => {
  const { address } = Result.getOrThrow(PostgresOptions.decode({ url: server.url }))
  const session = await pg.connect(address, 10_000, () => {})
  const added = (term: number) => session.prepared("SELECT 1 + $1::int", [term])
  assert.deepStrictEqual(await added(1), [[2]])
  // A pooler would use another connection.
  await session.run("DEALLOCATE ALL")
  assert.deepStrictEqual(await added(2), [[3]])
  await session.close()
})

test("after a backup was restored, a delivery from before settles no other message", async () => {
  const schema = fresh()
  const [before, after] = [await open({ schema }), await open({ schema })]
  const begun: Array<unknown> = []
  const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const consume = (requeue: Requeue, nth: number) =>
    requeue.consume("orders", { concurrency: 1 }, async (message) => {
      begun.push(message.body)
      await ends[nth]!.promise
    })
  const consumer = await consume(before, 0)
  await before.send("orders", "a")
  await until("the first run", () => begun.length === 1)
  const drained = consumer.drain()
  // The backup was made before the send, so the next message has the same number.
  await admin.query(`TRUNCATE ${schema}.message RESTART IDENTITY`)
  await consume(after, 1)
  await after.send("orders", "b")
  await until("the second run", () => begun.length === 2)
  ends[0]!.resolve()
  await drained
  const { rows } = await admin.query(`SELECT convert_from(body, 'UTF8') AS body FROM ${schema}.message`)
  ends[1]!.resolve()
  await Promise.all([before.close(), after.close()])
  assert.deepStrictEqual(begun, ["a", "b"])
  assert.deepStrictEqual(rows, [{ body: '"b"' }])
})

describe("the schema", () => {
  test("is created once, by one of many processes that open it together", async () => {
    const schema = `it's "b" $$ $requeue$ ${fresh()}`
    const all = await Promise.all(Array.from({ length: 20 }, () => open({ schema })))
    await all[0]!.send("orders", 1)
    assert.strictEqual((await all[19]!.counts("orders")).ready, 1)
    await Promise.all(all.map((each) => each.close()))
    const { rows } = await admin.query(`SELECT version FROM ${PostgresSchema.quoted(schema)}.version`)
    assert.deepStrictEqual(rows, [{ version: PostgresSchema.version }])
  })

  test("of a newer adapter is refused, and not changed", async () => {
    const schema = fresh()
    await (await open({ schema })).close()
    await admin.query(`UPDATE ${schema}.version SET version = 99`)
    const { isMisconfigured, message, reason } = await errorOf(open({ schema }))
    assert.deepStrictEqual([reason, isMisconfigured], ["ConnectionFailed", true])
    assert.match(message, /version 99 .* supports 4.*Install the version/)
  })

  test("of an older adapter is not migrated with create: false", async () => {
    const schema = fresh()
    await (await open({ schema })).close()
    await admin.query(`UPDATE ${schema}.version SET version = 0`)
    const { isMisconfigured, message } = await errorOf(open({ schema, create: false }))
    assert.isTrue(isMisconfigured)
    assert.match(message, /has version 0 .* needs 4\. Run requeue create/)
  })

  test("of version 2 is migrated with its messages, and others then have keys or fairBy", async () => {
    const schema = fresh()
    await createVersion2(schema)
    await admin.query(`INSERT INTO ${schema}.message (queue, body) VALUES ('orders', '1')`)
    const requeue = await open({ schema })
    await requeue.sendBatch("orders", [
      { body: 2, key: "a" },
      { body: 3, key: "a" },
      { body: 4, fairBy: "b" }
    ])
    assert.deepStrictEqual(await requeue.counts("orders"), { ready: 3, inFlight: 0, delayed: 0, blocked: 1 })
    const seen: Array<unknown> = []
    await requeue.consume("orders", { concurrency: 10 }, ({ body }) => void seen.push(body))
    await until("four messages", () => seen.length === 4)
    assert.sameMembers(seen, [1, 2, 3, 4])
    assert.isBelow(seen.indexOf(2), seen.indexOf(3))
    await requeue.close()
  })

  test("refuses a row of another program whose fair_by no import of its dead letter would accept", async () => {
    const schema = fresh()
    await (await open({ schema })).close()
    const insert = (length: number) =>
      admin.query(`INSERT INTO ${schema}.message (queue, fair_by, body) VALUES ('orders', repeat('x', ${length}), '1')`)
    await insert(200)
    for (const length of [0, 201]) {
      const error: unknown = await insert(length).catch((cause: unknown) => cause)
      assert.match(String(error), /violates check constraint "message_fair_by"/)
    }
  })

  test("is refused to a role whose transactions do not see what is committed meanwhile", async () => {
    const level = "ALTER ROLE strict SET default_transaction_isolation = 'repeatable read'"
    const { isMisconfigured, message } = await errorOf(open({ url: await role("strict", level), schema: fresh() }))
    assert.isTrue(isMisconfigured)
    assert.match(message, /is repeatable read, .* needs read committed\. Run ALTER ROLE/)
  })

  test("that is missing is not created with create: false", async () => {
    const { message, reason } = await errorOf(open({ schema: fresh(), create: false }))
    assert.strictEqual(reason, "ConnectionFailed")
    assert.match(message, /has no tables of Requeue\. Run requeue create/)
  })

  test("that was dropped is reported by each call, and serves again when it is restored", async () => {
    const schema = fresh()
    const requeue = await open({ schema })
    await admin.query(`ALTER SCHEMA ${schema} RENAME TO ${schema}_moved`)
    const { message, reason } = await errorOf(requeue.send("orders", 1))
    assert.strictEqual(reason, "ConnectionFailed")
    assert.match(message, /PostgresSchema\.sql/)
    await admin.query(`ALTER SCHEMA ${schema}_moved RENAME TO ${schema}`)
    await requeue.send("orders", 1)
    await requeue.close()
  })
})

describe("a role", () => {
  test("with the permissions of PostgresSchema.sql sends, consumes, retries, counts and prunes", async () => {
    const [schema, url] = [fresh(), await role("worker")]
    await admin.query(PostgresSchema.sql(schema, "worker"))
    const requeue = await open({ url, schema })
    await requeue.sendBatch("orders", [
      { body: 1, key: "a" },
      { body: 2 },
      { body: 3, key: "a" },
      { body: 4, fairBy: "b" }
    ])
    const seen: Array<number> = []
    const shareLimits = { concurrency: 1, rateLimit: { max: 1, per: 100 } }
    const consumer = await requeue.consume("orders", { retry: { maxRetries: 0 }, shareLimits }, ({ body }) => {
      seen.push(Number(body))
      if (body === 2) throw new Error("no")
    })
    await until("four messages", () => seen.length === 4)
    await consumer.drain()
    const [waiting, dead] = [await requeue.counts("orders"), await requeue.counts("orders.dlq")]
    assert.deepStrictEqual([waiting.ready, waiting.inFlight, dead.ready], [0, 0, 1])
    const own = await client(url)
    assert.strictEqual((await own.query(Statements.make(schema).prune, [0, 10])).rowCount, 0)
    await own.end()
    await requeue.close()
  })

  test("with the permissions of an older version has the new ones after PostgresSchema.sql, which can run twice", async () => {
    const [schema, url] = [fresh(), await role("veteran")]
    await createVersion2(schema)
    await admin.query(`GRANT USAGE ON SCHEMA ${schema} TO veteran;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ${schema}.message TO veteran;
      GRANT SELECT, INSERT ON ${schema}.queue, ${schema}.version TO veteran`)
    for (let times = 0; times < 2; times++) await admin.query(PostgresSchema.sql(schema, "veteran"))
    const requeue = await open({ url, schema, create: false })
    await requeue.send("orders", 1, { key: "a", fairBy: "b" })
    const seen: Array<unknown> = []
    const shareLimits = { rateLimit: { max: 1, per: 100 } }
    const consumer = await requeue.consume("orders", { shareLimits }, ({ body }) => void seen.push(body))
    await until("the message", () => seen.length === 1)
    await consumer.drain()
    await requeue.close()
    const { rows } = await admin.query(`SELECT version FROM ${schema}.version`)
    assert.deepStrictEqual(rows, [{ version: PostgresSchema.version }])
  })

  test("without permissions is refused, with the remedy", async () => {
    const [schema, url] = [fresh(), await role("stranger")]
    await admin.query(PostgresSchema.sql(schema))
    const { message, reason } = await errorOf(open({ url, schema }))
    assert.strictEqual(reason, "AccessRefused")
    assert.match(message, /permission denied.*Grant the role the permissions that PostgresSchema\.sql/)
  })

  test("that may not create the tables is refused", async () => {
    const url = await role("reader")
    const { reason } = await errorOf(open({ url, schema: fresh() }))
    assert.strictEqual(reason, "AccessRefused")
  })

  test.each([
    ["a wrong password", (url: URL) => Object.assign(url, { password: "wrong" }), "AccessRefused"],
    ["no password", (url: URL) => Object.assign(url, { password: "" }), "AccessRefused"],
    ["a database that is missing", (url: URL) => Object.assign(url, { pathname: "/nowhere" }), "ConnectionFailed"],
    ["a server without TLS", (url: URL) => Object.assign(url, { search: "?sslmode=require" }), "ConnectionFailed"],
    ["no server", (url: URL) => Object.assign(url, { port: "1" }), "ConnectionFailed"]
  ] as const)("%s is reported, and no password is shown", async (_, change, reason) => {
    const error = await errorOf(open({ url: urlOf(change) }))
    assert.strictEqual(error.reason, reason, error.message)
    assert.strictEqual(error.remedy === undefined, reason === "ConnectionFailed" && error.isMisconfigured !== true)
    assert.notInclude(`${error.message} ${error.stack}`, new URL(server.url).password)
  })

  test("gets its password by a function, for each connection", async () => {
    const { password } = new URL(server.url)
    let calls = 0
    const requeue = await open({
      url: urlOf((url) => Object.assign(url, { password: "" })),
      schema: fresh(),
      password: async () => {
        calls++
        return password
      }
    })
    await requeue.send("orders", 1)
    await requeue.counts("orders")
    // Connections for sends, for notifications and for counts.
    await until("three connections", () => calls === 3)
    await requeue.close()
  })
})

describe("a browser whose page fails", () => {
  /** Connections that break once, after this statement. */
  const breaking = (text: string): Driver & { readonly arm: () => void } => {
    let isArmed = false
    return {
      ...pg,
      arm: () => void (isArmed = true),
      connect: async (...args) => {
        const session = await pg.connect(...args)
        return {
          ...session,
          query: async (statement, values) => {
            const rows = await session.query(statement, values)
            if (statement !== text || !isArmed) return rows
            isArmed = false
            session.destroy()
            throw new Error("the answer is lost")
          }
        }
      }
    }
  }

  test.each(["claimAs", "count"] as const)(
    "keeps what it has shown, shows the rest, and returns all: the %s gets no answer",
    async (name) => {
      const schema = fresh()
      const requeue = await open({ schema })
      for (const body of ["a", "b", "c"]) await requeue.send("orders", body, { id: body })
      const settings = Result.getOrThrow(PostgresOptions.decode({ url: server.url, schema, lease: "1 hour" }))
      const driver = breaking(Statements.make(schema)[name])
      const shown = Effect.gen(function* () {
        const { admin } = yield* openBroker(settings, driver)
        const failed = Effect.gen(function* () {
          const browser = yield* admin.browse({ queue: "orders", from: "ready", limit: 100 })
          assert.lengthOf(yield* browser.next(1), 1)
          driver.arm()
          const { reason } = yield* Effect.flip(browser.next(1))
          // After `ConnectionLost`, it would have to show the first message again.
          assert.strictEqual(reason, "ConnectionFailed")
          return browser
        })
        yield* Effect.scoped(failed)
        assert.strictEqual((yield* Effect.promise(() => requeue.counts("orders"))).ready, 3)
        const browser = yield* failed
        const ids: Array<string> = []
        for (let page = yield* browser.next(10); page.length > 0; page = yield* browser.next(10)) {
          ids.push(...page.map(({ delivery }) => delivery.metadata.id))
        }
        return ids
      })
      assert.deepStrictEqual(await Effect.runPromise(Effect.scoped(shown)), ["b", "c"])
      assert.strictEqual((await requeue.counts("orders")).ready, 3)
      await requeue.close()
    }
  )
})

describe("a server that does not serve", () => {
  test("a statement that its timeout cancels did not happen, and is reported as Throttled", async () => {
    const [schema, url] = [fresh(), await role("hasty", "ALTER ROLE hasty SET statement_timeout = '300ms'")]
    await admin.query(PostgresSchema.sql(schema, "hasty"))
    const requeue = await open({ url, schema })
    await requeue.send("orders", 1)
    await admin.query(`BEGIN; LOCK TABLE ${schema}.message`)
    const { message, reason } = await errorOf(requeue.send("orders", 2))
    await admin.query("COMMIT")
    assert.strictEqual(reason, "Throttled")
    assert.match(message, /statement_timeout/)
    await requeue.send("orders", 3)
    assert.strictEqual((await requeue.counts("orders")).ready, 2)
    await requeue.close()
  })

  test("a lock that the role does not wait for is reported as Throttled", async () => {
    const [schema, url] = [fresh(), await role("impatient", "ALTER ROLE impatient SET lock_timeout = '100ms'")]
    await admin.query(PostgresSchema.sql(schema, "impatient"))
    const requeue = await open({ url, schema })
    await requeue.send("orders", 1)
    await admin.query(`BEGIN; LOCK TABLE ${schema}.message`)
    const { reason } = await errorOf(requeue.send("orders", 2))
    await admin.query("COMMIT")
    assert.strictEqual(reason, "Throttled")
    await requeue.send("orders", 3)
    assert.strictEqual((await requeue.counts("orders")).ready, 2)
    await requeue.close()
  })

  test("a transaction that the server ends, because it was idle, leaves its message", async () => {
    const [schema, url] = [
      fresh(),
      await role("idle", "ALTER ROLE idle SET idle_in_transaction_session_timeout = '100ms'")
    ]
    await admin.query(PostgresSchema.sql(schema, "idle"))
    const requeue = await open({ url, schema })
    const seen: Array<number> = []
    await requeue.consume("orders", { retry: { maxRetries: 3, backoff: constant(0) } }, async (message) => {
      seen.push(message.attempts)
      const own = await client(url)
      const ended = new Promise((resolve) => own.once("end", resolve))
      await own.query("BEGIN")
      await message.within(own)
      await requeue.within(own).send("receipts", message.attempts)
      if (message.attempts === 1) await ended
      await own.query("COMMIT")
      await own.end()
    })
    await requeue.send("orders", 1)
    await until("the second run", () => seen.length === 2)
    await until("its effect", async () => (await requeue.counts("receipts")).ready === 1)
    const { inFlight, ready } = await requeue.counts("orders")
    assert.deepStrictEqual([ready, inFlight], [0, 0])
    await requeue.close()
  })

  test("a listener whose connection is terminated listens again", async () => {
    const schema = fresh()
    const requeue = await open({ schema })
    const seen: Array<unknown> = []
    await requeue.consume("orders", {}, ({ body }) => void seen.push(body))
    const listeners = async () => {
      const { rows } = await admin.query<{ pid: number }>("SELECT pid FROM pg_stat_activity WHERE query = $1", [
        `LISTEN "${schema}"`
      ])
      return rows.map(({ pid }) => pid)
    }
    await until("a listener", async () => (await listeners()).length === 1)
    const [former] = await listeners()
    await admin.query("SELECT pg_terminate_backend($1)", [former])
    await until("another listener", async () => (await listeners()).some((pid) => pid !== former))
    const other = await open({ schema })
    await other.send("orders", 1)
    await until("the message", () => seen.length === 1)
    await other.close()
    await requeue.close()
  })

  test("a consumer that sends nothing is connected again after its connections were terminated", async () => {
    const requeue = await open({ schema: fresh() })
    await requeue.consume("orders", {}, () => {})
    const state = async () => (await requeue.health()).connection.state
    assert.strictEqual(await state(), "up")
    const pids = async () => {
      const { rows } = await admin.query<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'requeue'"
      )
      return rows.map(({ pid }) => pid)
    }
    const former = await pids()
    await admin.query("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", [former])
    await until("other connections", async () => {
      const others = (await pids()).filter((pid) => !former.includes(pid))
      return others.length >= former.length && (await state()) === "up"
    })
    await requeue.close()
  })

  test("a call without an answer ends with its timeout, and later ones succeed", async () => {
    const schema = fresh()
    // A slow machine may need several attempts to connect.
    const requeue = await open({ schema, timeout: 3000 }, 120_000)
    await requeue.send("orders", 1)
    await admin.query(`BEGIN; LOCK TABLE ${schema}.message`)
    const { reason } = await errorOf(requeue.send("orders", 2))
    await admin.query("COMMIT")
    assert.strictEqual(reason, "Timeout")
    await until("the message after the lock", () =>
      requeue.send("orders", 3).then(
        () => true,
        () => false
      )
    )
    await requeue.close()
  })

  test("a server that becomes read-only, as after a failover, is left, and used again as a primary", async () => {
    const schema = fresh()
    const requeue = await open({ schema })
    await requeue.send("orders", 1)
    await admin.query("ALTER SYSTEM SET default_transaction_read_only = on")
    await admin.query("SELECT pg_reload_conf()")
    await until("an error", async () => {
      const error = await requeue.send("orders", 2).then(
        () => undefined,
        (cause: BrokerError.BrokerError) => cause
      )
      if (error !== undefined) {
        assert.strictEqual(error.reason, "ConnectionFailed", error.message)
        assert.match(error.message, /Connect to the primary/)
      }
      return error !== undefined
    })
    await admin.query("BEGIN READ WRITE; SET LOCAL transaction_read_only = off; COMMIT")
    await admin.query("SET default_transaction_read_only = off")
    await admin.query("ALTER SYSTEM RESET default_transaction_read_only")
    await admin.query("SELECT pg_reload_conf()")
    await until("a send", () =>
      requeue.send("orders", 3).then(
        () => true,
        () => false
      )
    )
    await requeue.close()
  })

  test("while connections are terminated and the server restarts, no confirmed message is lost", async () => {
    const schema = fresh()
    const requeue = await open({ schema, lease: 2000 })
    const [sent, seen]: [Set<number>, Set<number>] = [new Set(), new Set()]
    await requeue.consume("orders", { concurrency: 20 }, async ({ body }) => void seen.add(Number(body)))
    const send = async (from: number) => {
      for (let i = from; i < from + 100; i++) {
        const isSent = await requeue.send("orders", i).then(
          () => true,
          () => false
        )
        if (isSent) sent.add(i)
      }
    }
    const terminate = () =>
      admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'requeue'")
    let isSending = true
    const sending = Promise.all(Array.from({ length: 10 }, (_, index) => send(index * 100))).finally(
      () => (isSending = false)
    )
    for (let round = 0; round < 5; round++) {
      const before = seen.size
      // A send that fails is not repeated, so there may be fewer than 1,000 messages.
      await until("progress", () => seen.size > before || !isSending)
      await terminate()
    }
    await server.kill()
    await server.start()
    admin = await client()
    await sending
    await until("all that was sent", () => [...sent].every((each) => seen.has(each)))
    await until("an empty queue", async () => {
      const { delayed, inFlight, ready } = await requeue.counts("orders")
      return ready === 0 && inFlight === 0 && delayed === 0
    })
    assert.isAbove(sent.size, 100)
    await requeue.close()
  })
})
