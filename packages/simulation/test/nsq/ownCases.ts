/** What only NSQ has: settlements that are refused late, leases of waiting messages, pauses, and messages stored twice. */
import { NsqNative } from "@requeue/adapter-nsq"
import { Port, Wait } from "@requeue/conformance"
import { type Consumer, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { assert } from "vitest"
import type { Nsqd } from "../../src/servers/nsq/index.ts"
import { type Bench, consume, events, type OwnCase, recorded, type Run, send } from "./Bench.ts"

const queue = "orders"
const channel = "requeue"

/** nsqd forgets what is in flight, so it refuses its settlement. */
const empty = ({ nsqd: [first] }: Bench) => Effect.sync(() => first!.topic(queue).channel(channel).empty())

const refused = (
  ...[command, event, settlement]: readonly ["FIN", "Succeeded", "Ack"] | readonly ["REQ", "RetryScheduled", "Retry"]
): OwnCase => ({
  name: `a ${command} that nsqd refuses is reported as failed, after it was reported as done`,
  program: (bench) => {
    const { of, onEvent, tags } = events()
    return Effect.gen(function* () {
      yield* bench.on((broker) =>
        Effect.gen(function* () {
          const retry = RetryPolicy.make({ maxRetries: 2 })
          yield* consume(queue, [], { retry, onEvent }, (message) =>
            Effect.andThen(
              empty(bench),
              Effect.sync(() => command === "REQ" && message.retry({ delay: 5000 }))
            )
          )
          yield* send(broker, queue, "m")
          yield* Wait.until("a refusal", () => of("SettleFailed").length === 1)
        })
      )
      assert.deepStrictEqual(tags(), ["Received", event, "SettleFailed"])
      const [failed] = of("SettleFailed")
      assert.deepInclude(failed, { queue, id: "m", attempts: 1, settlement })
      assert.match(failed!.error.message, new RegExp(`LeaseLost: .*E_${command}_FAILED .*Raise messageTimeout`))
    })
  }
})

const leases: ReadonlyArray<OwnCase> = [
  {
    name: "messages that wait behind slow handlers for longer than their leases are delivered once each",
    settings: { options: { messageTimeout: 1000 } },
    program: ({ on }) => {
      const { of, onEvent } = events()
      const ids = ["a", "b", "c", "d"]
      const runs: Array<Run> = []
      return Effect.gen(function* () {
        yield* on((broker) =>
          Effect.gen(function* () {
            yield* Effect.forEach(ids, (id) => send(broker, queue, id))
            yield* consume(queue, runs, { prefetch: 3, onEvent }, () => Effect.sleep(1600))
            yield* Wait.until("all ends", () => of("Succeeded").length === 4)
          })
        )
        assert.deepStrictEqual([of("Received").length, of("LeaseLost").length], [4, 0])
        assert.deepStrictEqual(runs.map(({ id }) => id).toSorted(), ids)
      })
    }
  },
  {
    name: "a lease that is lost while a handler runs is reported once",
    settings: { options: { messageTimeout: 1000 } },
    program: (bench) => {
      const { of, onEvent } = events()
      return Effect.gen(function* () {
        yield* bench.on((broker) =>
          Effect.gen(function* () {
            yield* consume(queue, [], { onEvent }, () => Effect.andThen(empty(bench), Effect.sleep(2500)))
            yield* send(broker, queue, "m")
            // The handler outlasts several extensions, and is then settled in vain.
            yield* Wait.until("its end", () => of("SettleFailed").length === 1)
          })
        )
        assert.lengthOf(of("LeaseLost"), 1)
      })
    }
  }
]

const state = ({ health }: Consumer.Consumer): string => {
  const { state: its, trouble } = health()
  return `${its} ${trouble?.because ?? ""}`
}

const pause = (nsqd: Nsqd.Nsqd, what: "channel" | "topic", topic: string, isPaused: boolean): void =>
  (what === "topic" ? nsqd.topic(topic) : nsqd.topic(topic).channel(channel)).pause(isPaused)

const paused = (what: "channel" | "topic"): OwnCase => ({
  name: `the consumer of a ${what} that is paused is down, and says so, until it is unpaused`,
  settings: { nodes: 2 },
  program: ({ nsqd, on }) =>
    on((broker) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        for (const each of nsqd) each.topic(queue).channel(channel)
        const consumer = yield* consume(queue, runs)
        const other = yield* consume("other", [])
        assert.strictEqual(state(consumer), "running ")
        for (const each of nsqd) pause(each, what, queue, true)
        yield* Wait.until("a consumer that is down", () => state(consumer).startsWith("down "), 10_000)
        assert.match(state(consumer), new RegExp(`channel requeue of the topic ${queue}, or the topic, is paused`))
        assert.strictEqual(state(other), "running ")
        yield* send(broker, queue, "m")
        for (const each of nsqd) pause(each, what, queue, false)
        yield* Wait.until("a consumer that runs", () => state(consumer) === "running ")
        yield* Wait.until("the message", () => runs.length === 1)
      })
    )
})

const half: OwnCase = {
  name: "a channel that is paused on one nsqd of two leaves its consumer running",
  settings: { nodes: 2 },
  program: ({ nsqd, on }) =>
    on(() =>
      Effect.gen(function* () {
        for (const each of nsqd) for (const topic of [queue, "whole"]) each.topic(topic).channel(channel)
        pause(nsqd[0]!, "channel", queue, true)
        const consumer = yield* consume(queue, [])
        // It is asked later than the first one, which was asked by then.
        const later = yield* consume("whole", [])
        for (const each of nsqd) pause(each, "channel", "whole", true)
        yield* Wait.until("one that is down", () => state(later).startsWith("down "))
        assert.strictEqual(state(consumer), "running ")
      })
    )
}

const asked: Array<string> = []

const idle: OwnCase = {
  name: "a hundred idle consumers ask nsqd no more than fifty times a second, all together",
  settings: {
    driver: (driver) => ({
      ...driver,
      ask: (base, path, options) => {
        asked.push(path)
        return driver.ask(base, path, options)
      }
    })
  },
  program: ({ on }) =>
    on(() =>
      Effect.gen(function* () {
        yield* Effect.forEach(
          Array.from({ length: 100 }, (_, index) => `q${index}`),
          (name) => consume(name, [])
        )
        yield* Effect.sleep("1 minute")
        const before = asked.length
        yield* Effect.sleep("1 minute")
        const rate = (asked.length - before) / 60
        assert.isAbove(rate, 40)
        assert.isAtMost(rate, 50)
      })
    )
}

/** The bytes of a message that was stored twice, published again: to the nsqd of the copy that ran first, or to the other. */
const again = (concurrency: 1 | 2, place: 0 | 1): OwnCase => ({
  name: `bytes of a message stored twice run again when they are published again: ${concurrency} ran, on ${["the same", "the other"][place]} nsqd`,
  settings: { nodes: 2, options: { publishTo: 2 } },
  program: ({ nsqd, on }) => {
    const runs: Array<string> = []
    const counts = (of: Nsqd.Nsqd) => of.topic(queue).channel(channel).statistics()
    const isDone = (of: Nsqd.Nsqd) => counts(of).depth + counts(of).inFlight === 0
    return Effect.gen(function* () {
      for (const each of nsqd) for (const name of ["tap", channel]) each.topic(queue).channel(name)
      // Copies that both arrive before one is finished both run.
      const held = concurrency === 1 ? nsqd.slice(1) : []
      for (const each of held) pause(each, "channel", queue, true)
      yield* on((broker) =>
        Effect.gen(function* () {
          const all = yield* Deferred.make<void>()
          yield* consume(queue, [], { concurrency }, (message) => {
            runs.push(message.body === "last" ? "last" : NsqNative.of(message)!.nsqd)
            return runs.length <= concurrency ? Deferred.await(all) : undefined
          })
          yield* send(broker, queue, "m")
          yield* Wait.until("its runs", () => runs.length === concurrency)
          yield* Deferred.succeed(all, undefined)
          yield* Wait.until("its ends", () => nsqd.every((each) => held.includes(each) || isDone(each)))
          for (const each of held) pause(each, "channel", queue, false)
          yield* Wait.until("the end of the other copy", () => nsqd.every(isDone))
          const first = nsqd.findIndex(({ name }) => runs[0]!.startsWith(name))
          const target = nsqd[(first + place) % 2]!
          const [{ body } = { body: Buffer.alloc(0) }] = target.topic(queue).channel("tap").waiting()
          target.topic(queue).put(body, 0, undefined)
          target.topic(queue).put(Buffer.from(JSON.stringify("last")), 0, undefined)
          yield* Wait.until("the last run", () => runs.includes("last"))
        })
      )
      assert.lengthOf(runs, concurrency + 2)
    })
  }
})

/** More than nsqd accepts, and less than the options say. */
const large = { body: new Uint8Array(1.5 * 2 ** 20), option: 2 * 2 ** 20 }

const neighbours: OwnCase = {
  name: "of messages that are published in one turn, one that nsqd refuses is refused, and no neighbour",
  settings: { options: { http: false, maxMsgSize: large.option, publishTimeout: 3000 } },
  program: ({ nsqd, on }) =>
    on((broker) =>
      Effect.gen(function* () {
        const results = yield* Effect.forEach(
          ["a", "b", "c", "d"],
          (id) => Effect.result(send(broker, queue, id, id === "c" ? { body: large.body } : {})),
          { concurrency: "unbounded" }
        )
        const reasons = results.map((result) => (Result.isSuccess(result) ? "sent" : result.failure.reason))
        assert.deepStrictEqual(reasons, ["sent", "sent", "BodyTooLarge", "sent"])
        assert.strictEqual(nsqd[0]!.topic(queue).statistics().messages, 3)
      })
    )
}

/** The limit of nsqd is unknown, and each refusal closes the connection for publishing. */
const letters: OwnCase = {
  name: "the dead letters of one call share a command, and those that nsqd refuses take no others with them, and can be settled again",
  settings: { flags: { maxMsgSize: 1000 }, options: { http: false } },
  program: ({ network, nsqd: [first], on }) =>
    on((broker) =>
      Effect.gen(function* () {
        const port = yield* Port.open(broker, { queue, credit: 20 })
        for (let index = 0; index < 12; index++) {
          const body = Buffer.from(JSON.stringify("x".repeat(index % 2 === 0 ? 800 : 10)))
          yield* send(broker, queue, `m${index}`, { body })
        }
        const deliveries = yield* port.take(12)
        const settlement = Settlement.DeadLetter("permanent", `${queue}.dlq`, { name: "E", message: "x".repeat(200) })
        const sent = recorded(network)
        const failures = yield* port.settleAll(deliveries.map((delivery) => ({ delivery, settlement })))
        assert.deepStrictEqual(
          failures.map(({ error, fate }) => `${fate} ${error.reason}`),
          Array.from({ length: 6 }, () => "rejected BodyTooLarge")
        )
        assert.isTrue(failures.every(({ delivery }) => delivery.body.length > 100))
        for (const { delivery } of failures) assert.isEmpty(yield* port.settle(delivery, Settlement.Ack))
        yield* Wait.until("nothing but dead letters", () => {
          const { depth, inFlight } = first!.topic(queue).channel(channel).statistics()
          return depth + inFlight === 0
        })
        const [gathered, ...alone] = sent("PUB", "MPUB").map(({ command }) => command.name)
        assert.deepStrictEqual([gathered, alone], ["MPUB", Array.from({ length: 6 }, () => "PUB")])
      })
    )
}

export const cases: ReadonlyArray<OwnCase> = [
  letters,
  neighbours,
  refused("FIN", "Succeeded", "Ack"),
  refused("REQ", "RetryScheduled", "Retry"),
  ...leases,
  paused("channel"),
  paused("topic"),
  half,
  idle,
  again(1, 0),
  again(1, 1),
  again(2, 0),
  again(2, 1)
]
