import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { EventEmitter } from "node:events"
import { copyHeader } from "../src/internal/wire.ts"
import { type ConfirmChannel, type Publication, publish } from "../src/internal/client.ts"
import type { Connection, Live } from "../src/internal/connect/connection.ts"
import * as Publisher from "../src/internal/publish/publisher.ts"
import * as RabbitMqOptions from "../src/RabbitMqOptions.ts"

const publication = (name: string, size = 1): Publication => ({
  queue: "q",
  exchange: "",
  routingKey: "q",
  content: Buffer.alloc(size),
  options: { messageId: name },
  headers: {},
  kept: []
})

/** A connection whose server confirms when it is told to, and the publisher on it. */
const start = Effect.fnUntraced(function* (options: RabbitMqOptions.Options = {}, channelMax = 2047) {
  const written: Array<{ readonly name: unknown; readonly confirm: (error: unknown) => void }> = []
  const unblocked = yield* Latch.make(true)
  let blockedBy: string | undefined
  let channels = 0
  let last = new EventEmitter()
  let refusal: { readonly told: string; readonly failure?: Error } | undefined
  const confirmChannel = async () => {
    if (refusal !== undefined) throw new Error(refusal.told)
    if (channels === channelMax) throw new Error("No channels left to allocate")
    channels++
    const channel = new EventEmitter()
    const unconfirmed = new Set<(error: unknown) => void>()
    // As the driver does.
    channel.on("close", () => {
      for (const confirm of unconfirmed) confirm(new Error("channel closed"))
    })
    last = channel
    return Object.assign(channel, {
      publish: (...[, , , options, done]: Parameters<ConfirmChannel["publish"]>) => {
        if (options?.headers["bad"] !== undefined) throw new TypeError("Unknown type to encode: bad")
        const confirm = (error: unknown) => {
          unconfirmed.delete(confirm)
          done?.(error, {})
        }
        unconfirmed.add(confirm)
        written.push({ name: options?.messageId, confirm })
      },
      close: async () => queueMicrotask(() => channel.emit("close"))
    }) as unknown as ConfirmChannel
  }
  const live = {
    driver: { channelMax, confirmChannel, heard: () => 0 },
    unblocked,
    blockedBy: () => blockedBy,
    isGone: () => refusal?.failure !== undefined,
    failure: () => refusal?.failure
  } as unknown as Live
  let isUp = true
  const connection = {
    live: Effect.suspend(() => (isUp ? Effect.succeed(live) : Effect.never)),
    current: () => (isUp ? live : undefined),
    error: () => undefined
  } as unknown as Connection
  const scope = yield* Scope.make()
  const settings = Result.getOrThrow(RabbitMqOptions.decode({ publishTimeout: 1000, ...options }))
  const publisher = yield* Scope.provide(Publisher.make(connection, settings), scope)
  const answers = new Map<string, string>()
  const submit = (name: string, size?: number, change: Partial<Publication> = {}) =>
    publisher.submit(
      { ...publication(name, size), ...change },
      (error, isBystander) =>
        void answers.set(name, isBystander === true ? "Bystander" : (error?.reason ?? "Confirmed"))
    )
  // A channel is open from now on.
  submit("first")
  yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
  written.pop()!.confirm(null)
  answers.clear()
  return {
    publisher,
    answers,
    written,
    submit,
    names: () => written.map(({ name }) => name),
    channels: () => channels,
    closeChannel: (words: string) => {
      last.emit("error", new Error(`Channel closed by server: ${words}`))
      last.emit("close")
    },
    cutConnection: () => last.emit("close"),
    giveBack: (name: string | undefined, exchange = "") =>
      last.emit("return", {
        fields: { exchange, routingKey: "q" },
        properties: { messageId: "same", headers: name === undefined ? {} : { [copyHeader]: name } }
      }),
    block: (reason: string | undefined) => {
      blockedBy = reason
      if (reason === undefined) unblocked.openUnsafe()
      else unblocked.closeUnsafe()
    },
    refuse: (told: string, failure?: string) =>
      (refusal = failure === undefined ? { told } : { told, failure: new Error(failure) }),
    setUp: (up: boolean) => (isUp = up),
    close: Scope.close(scope, Exit.void)
  }
})

const settled = Effect.promise(() => new Promise((resume) => setImmediate(resume)))

describe("a publisher", () => {
  it.effect("writes at once and in order, and answers each when it is confirmed", () =>
    Effect.gen(function* () {
      const { answers, channels, names, submit, written } = yield* start()
      for (const name of ["a", "b", "c"]) submit(name)
      assert.deepStrictEqual(names(), ["a", "b", "c"])
      written[1]!.confirm(null)
      written[0]!.confirm(new Error("nacked"))
      assert.deepStrictEqual([...answers.keys()], ["b", "a"])
      assert.strictEqual(answers.get("b"), "Confirmed")
      assert.strictEqual(channels(), 1)
    })
  )

  it.effect("lets those that find no room wait, in order, by number and by bytes", () =>
    Effect.gen(function* () {
      const few = yield* start({ maxUnconfirmed: 2 })
      for (const name of ["a", "b", "c", "d"]) few.submit(name)
      assert.deepStrictEqual(few.names(), ["a", "b"])
      few.written[0]!.confirm(null)
      few.submit("e")
      assert.deepStrictEqual(few.names(), ["a", "b", "c"])

      const large = yield* start()
      for (const name of ["a", "b", "c"]) large.submit(name, 10 * 1024 * 1024)
      assert.deepStrictEqual(large.names(), ["a", "b"])
      large.written[0]!.confirm(null)
      assert.deepStrictEqual(large.names(), ["a", "b", "c"])
    })
  )

  it.effect("knows a returned message by the name of its copy, whatever a producer repeats or leaves out", () =>
    Effect.gen(function* () {
      const { answers, giveBack, submit, written } = yield* start()
      const names = ["a", "b", "c", "d"]
      for (const name of names) submit(name, 1, { options: { messageId: "same" }, headers: { [copyHeader]: name } })
      giveBack("d")
      giveBack("b")
      for (const { confirm } of written) confirm(null)
      const expected = { a: "Confirmed", b: "Unroutable", c: "Confirmed", d: "Unroutable" }
      assert.deepStrictEqual(Object.fromEntries(answers), expected)
    })
  )

  it.effect("confirms none of several alike when one is returned, nor the second of two returns", () =>
    Effect.gen(function* () {
      for (const returns of [1, 2]) {
        const { answers, giveBack, submit, written } = yield* start()
        // One with its producer's headers, one without any, and two of one name that a producer repeats.
        submit("kept", 1, { kept: [{ name: "n", bytes: Buffer.from("\x01nV", "latin1") }] })
        submit("bare")
        for (const name of ["twin", "other twin"]) submit(name, 1, { headers: { [copyHeader]: "repeated" } })
        submit("elsewhere", 1, { routingKey: "other" })
        submit("own", 1, { headers: { [copyHeader]: "own" } })
        for (let count = 0; count < returns; count++) giveBack("repeated")
        for (const { confirm } of written.toReversed()) confirm(null)
        assert.deepStrictEqual(Object.fromEntries(answers), {
          own: "Confirmed",
          elsewhere: "Confirmed",
          "other twin": "Unroutable",
          twin: "Unroutable",
          bare: "Unroutable",
          kept: "Unroutable"
        })
      }
    })
  )

  it.effect("gives up what is not confirmed in time, with its channel", () =>
    Effect.gen(function* () {
      const { answers, channels, names, submit } = yield* start()
      submit("a")
      yield* TestClock.adjust(999)
      assert.strictEqual(answers.size, 0)
      yield* TestClock.adjust(1)
      assert.strictEqual(answers.get("a"), "Timeout")
      submit("b")
      yield* settled
      assert.deepStrictEqual([names(), channels()], [["a", "b"], 2])
    })
  )

  it.effect("tells one that the server refuses from its bystanders", () =>
    Effect.gen(function* () {
      const { answers, channels, closeChannel, submit } = yield* start()
      submit("a")
      submit("b", 500)
      submit("c")
      closeChannel(`406 (PRECONDITION_FAILED) with message "message size 500 is larger than configured max size 100"`)
      assert.deepStrictEqual(Object.fromEntries(answers), { a: "Bystander", b: "BodyTooLarge", c: "Bystander" })
      submit("d")
      yield* settled
      assert.strictEqual(channels(), 2)
    })
  )

  it.effect(
    "shares channels between exchanges where the connection has few, and leaves one for what is too large",
    () =>
      Effect.gen(function* () {
        const { answers, channels, closeChannel, submit, written } = yield* start({}, 3)
        for (const name of ["a", "b", "c"]) submit(name, 1, { exchange: name })
        yield* settled
        for (const { confirm } of written.splice(0)) confirm(null)
        assert.deepStrictEqual([...answers.values()], ["Confirmed", "Confirmed", "Confirmed"])
        assert.strictEqual(channels(), 2)
        submit("large", 500, { exchange: "c" })
        closeChannel(
          '406 (PRECONDITION_FAILED) with message "PRECONDITION_FAILED - message size 500 is larger than configured max size 400"'
        )
        submit("again", 500, { exchange: "c" })
        yield* settled
        assert.strictEqual(written.at(-1)?.name, "again")
        assert.strictEqual(channels(), 3)
      })
  )

  it.effect("keeps what the server refuses apart: each exchange, and what is as large as something refused", () =>
    Effect.gen(function* () {
      const { answers, channels, closeChannel, submit } = yield* start()
      submit("a")
      submit("b", 1, { exchange: "gone" })
      yield* settled
      closeChannel(`404 (NOT-FOUND) with message "NOT_FOUND - no exchange 'gone' in vhost '/'"`)
      assert.deepStrictEqual(Object.fromEntries(answers), { b: "QueueMissing" })
      const tooLarge = `406 (PRECONDITION_FAILED) with message "message size 500 is larger than configured max size 100"`
      submit("c", 500, { exchange: "other" })
      yield* settled
      closeChannel(tooLarge)
      for (const [name, size] of [
        ["d", 1],
        ["e", 499],
        ["f", 500]
      ] as const)
        submit(name, size)
      yield* settled
      closeChannel(tooLarge)
      const refused = { b: "QueueMissing", c: "BodyTooLarge", f: "BodyTooLarge" }
      assert.deepStrictEqual([Object.fromEntries(answers), channels()], [refused, 4])
    })
  )

  it.effect("blames nobody where the server does not say whom, or the connection broke", () =>
    Effect.gen(function* () {
      const { answers, closeChannel, cutConnection, submit } = yield* start()
      for (const name of ["a", "b"]) submit(name)
      closeChannel(`406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - invalid message"`)
      submit("c")
      yield* settled
      cutConnection()
      const lost = { a: "ConnectionLost", b: "ConnectionLost", c: "ConnectionLost" }
      assert.deepStrictEqual(Object.fromEntries(answers), lost)
      submit("d")
      yield* settled
      closeChannel(`406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - invalid message"`)
      assert.strictEqual(answers.get("d"), "Unsupported")
    })
  )

  it.effect("refuses what cannot be encoded, and nothing else", () =>
    Effect.gen(function* () {
      const { answers, channels, names, submit, written } = yield* start()
      submit("a")
      submit("b", 1, { headers: { bad: "bad" } })
      submit("c")
      for (const { confirm } of written) confirm(null)
      assert.deepStrictEqual(Object.fromEntries(answers), { a: "Confirmed", b: "Unsupported", c: "Confirmed" })
      assert.deepStrictEqual([names(), channels()], [["a", "c"], 1])
    })
  )

  it.effect("goes on waiting for those beside one that is not confirmed in time", () =>
    Effect.gen(function* () {
      const { answers, submit, written } = yield* start()
      submit("slow")
      yield* TestClock.adjust(900)
      submit("a")
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(Object.fromEntries(answers), { slow: "Timeout" })
      written[1]!.confirm(null)
      assert.strictEqual(answers.get("a"), "Confirmed")
    })
  )

  it.effect("does not know of one that was written before the server blocked publishers", () =>
    Effect.gen(function* () {
      const { answers, block, submit } = yield* start()
      submit("a")
      block("low on disk")
      yield* TestClock.adjust(1000)
      assert.strictEqual(answers.get("a"), "Timeout")
    })
  )

  it.effect("waits for a server that blocks publishers, not for ever, and keeps the order", () =>
    Effect.gen(function* () {
      const { answers, block, names, submit } = yield* start()
      block("low on memory")
      submit("a")
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual([answers.get("a"), names()], ["Throttled", []])
      submit("b")
      submit("c")
      block(undefined)
      submit("d")
      yield* settled
      assert.deepStrictEqual(names(), ["b", "c", "d"])
      // The wait for the confirmation has a limit of its own.
      yield* TestClock.adjust(999)
      assert.isFalse(answers.has("b"))
    })
  )

  it.effect("fails at once what is refused a channel, by the driver or with the end of the connection", () =>
    Effect.gen(function* () {
      const { answers, refuse, submit } = yield* start()
      refuse("No channels left to allocate")
      submit("a", 1, { exchange: "other" })
      yield* settled
      const words = `NOT_ALLOWED - number of channels opened for user 'u' has reached the maximum allowed user limit of (1)`
      refuse("Channel ended", `Connection closed: 530 (NOT-ALLOWED) with message "${words}"`)
      submit("b", 1, { exchange: "another" })
      yield* settled
      assert.deepStrictEqual(Object.fromEntries(answers), { a: "ConnectionFailed", b: "ConnectionFailed" })
    })
  )

  it.effect("fails what finds no connection in time", () =>
    Effect.gen(function* () {
      const { answers, names, setUp, submit } = yield* start()
      setUp(false)
      submit("a")
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual([answers.get("a"), names()], ["ConnectionFailed", []])
    })
  )

  it.effect("does not write what is withdrawn, and its room is free", () =>
    Effect.gen(function* () {
      const { answers, names, publisher, setUp, submit, written } = yield* start({ maxUnconfirmed: 1 })
      submit("a")
      const waiting = submit("b")
      submit("c")
      publisher.withdraw(waiting)
      written[0]!.confirm(null)
      assert.deepStrictEqual(names(), ["a", "c"])
      written[1]!.confirm(null)
      setUp(false)
      publisher.withdraw(submit("d"))
      setUp(true)
      submit("e")
      yield* settled
      assert.deepStrictEqual(names(), ["a", "c", "e"])
      assert.deepStrictEqual([...answers.keys()], ["a", "c"])
    })
  )

  it.effect("answers what still waits when it is closed, and what comes later", () =>
    Effect.gen(function* () {
      const { answers, close, setUp, submit } = yield* start({ maxUnconfirmed: 1 })
      setUp(false)
      submit("a")
      submit("b")
      yield* close
      submit("c")
      assert.deepStrictEqual([...answers.values()], ["ConnectionFailed", "ConnectionFailed", "ConnectionFailed"])
    })
  )
})

describe("headers", () => {
  it("are those of their own message, whatever their names are", () => {
    const seen: Array<Readonly<Record<string, unknown>>> = []
    const channel = {
      publish: (...[, , , options]: Parameters<ConfirmChannel["publish"]>) => seen.push({ ...options?.headers })
    } as unknown as ConfirmChannel
    const all = [{ a: "1", b: "2" }, { "a\nb": "3" }, { b: "4", a: "5" }, { a: "6" }, { a: "7", b: "8" }]
    for (const headers of all) publish(channel, { ...publication("m"), headers }, () => {})
    assert.deepStrictEqual(seen, all)
  })

  it("are not sent where the driver would write a whole table in another way", () => {
    const channel = {
      publish: (...[, , , options]: Parameters<ConfirmChannel["publish"]>) => {
        const [name, content] = Object.entries<Buffer>(options?.headers)[0]!
        assert.strictEqual(name, "")
        // Another tag than that of the driver.
        content.copy(Buffer.from([0, "S".charCodeAt(0), 0, 0, 0, content.length, ...content]), 6)
      }
    } as unknown as ConfirmChannel
    const kept = [{ name: "n", bytes: Buffer.from("\x01nV", "latin1") }]
    assert.throws(() => publish(channel, { ...publication("m"), headers: { a: "1" }, kept }, () => {}), /byte arrays/)
  })
})
