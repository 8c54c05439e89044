/**
 * What only NSQ has, on real nsqd: settlements that are refused late, leases of messages that wait, channels that are paused,
 * and messages that are stored twice.
 */
import { type Consumer, Event, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { assert } from "vitest"
import { NsqNative } from "../../src/index.ts"
import { type Channel, channels, drain, stored } from "../real/raw.ts"
import type { Server } from "./server.ts"
import { consume, found, ids, on, outgoing, publishAll, queueName, until, type Run } from "../world.ts"

/** A case on two nsqd. */
export interface OwnCase {
  readonly name: string
  readonly run: (server: Server) => Promise<void>
}

const first = ({ direct }: Server) => ({ nsqd: [direct.nsqd![0]!] })

const post = (https: ReadonlyArray<string>, path: string, body = new Uint8Array()) =>
  Effect.promise(async () => {
    for (const http of https) {
      const { ok, status } = await fetch(`http://${http}/${path}`, { method: "POST", body })
      if (!ok) throw new Error(`${path}: ${status}`)
    }
  })

/** Makes a channel on all nsqd. */
const make = ({ http }: Server, topic: string, channel: string) =>
  Effect.andThen(
    post(http, `topic/create?topic=${topic}`),
    post(http, `channel/create?topic=${topic}&channel=${channel}`)
  )

/** nsqd forgets what is in flight, so that it takes no settlement of it. */
const empty = ({ http }: Server, topic: string) =>
  post(http.slice(0, 1), `channel/empty?topic=${topic}&channel=requeue`)

/** The events that a consumer tells. */
const told = () => {
  const events: Array<Event.Event> = []
  const of = <Tag extends Event.Event["_tag"]>(tag: Tag) =>
    events.filter((event): event is Extract<Event.Event, { readonly _tag: Tag }> => event._tag === tag)
  return { of, tags: () => events.map(({ _tag }) => _tag), onEvent: (event: Event.Event) => void events.push(event) }
}

const retry = RetryPolicy.make({ maxRetries: 2 })

const refused = (
  ...[command, event, settlement]: readonly ["FIN", "Succeeded", "Ack"] | readonly ["REQ", "RetryScheduled", "Retry"]
): OwnCase => ({
  name: `a ${command} that nsqd refuses is told as failed, after it was told as done`,
  run: async (server) => {
    const queue = queueName("refused")
    const { of, onEvent, tags } = told()
    await on(first(server), (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, [], { retry, onEvent }, (message) =>
          Effect.andThen(
            empty(server, queue),
            Effect.sync(() => command === "REQ" && message.retry({ delay: 5000 }))
          )
        )
        yield* publishAll(broker, queue, ["m"])
        yield* until("a refusal", () => of("SettleFailed").length === 1)
      })
    )
    assert.deepStrictEqual(tags(), ["Received", event, "SettleFailed"])
    const [failed] = of("SettleFailed")
    assert.deepInclude(failed, { queue, id: "m", attempts: 1, settlement })
    assert.match(failed!.error.message, new RegExp(`LeaseLost: .*E_${command}_FAILED .*Raise messageTimeout`))
  }
})

const leases: ReadonlyArray<OwnCase> = [
  {
    name: "messages that wait behind slow handlers for longer than their leases are delivered once each",
    run: async (server) => {
      const queue = queueName("behind")
      const { of, onEvent } = told()
      const runs: Array<Run> = []
      await on({ ...first(server), messageTimeout: 1000 }, (broker) =>
        Effect.gen(function* () {
          yield* publishAll(broker, queue, ids(4))
          yield* consume(queue, runs, { prefetch: 3, onEvent }, () => Effect.sleep(1600))
          yield* until("all ends", () => of("Succeeded").length === 4)
        })
      )
      assert.strictEqual(of("Received").length, 4)
      assert.strictEqual(of("LeaseLost").length, 0)
      assert.deepStrictEqual(runs.map(({ id }) => id).toSorted(), ids(4))
    }
  },
  {
    name: "a lease that is lost while a handler runs is told once",
    run: async (server) => {
      const queue = queueName("lost")
      const { of, onEvent } = told()
      await on({ ...first(server), messageTimeout: 1000 }, (broker) =>
        Effect.gen(function* () {
          yield* consume(queue, [], { onEvent }, () => Effect.andThen(empty(server, queue), Effect.sleep(2500)))
          yield* publishAll(broker, queue, ["m"])
          // Its handler outlasts several extensions, and then is settled in vain.
          yield* until("its end", () => of("SettleFailed").length === 1)
        })
      )
      assert.strictEqual(of("LeaseLost").length, 1)
    }
  }
]

const state = ({ health }: Consumer.Consumer): string => {
  const { state: its, trouble } = health()
  return `${its} ${trouble?.because ?? ""}`
}

const paused = (what: "channel" | "topic"): OwnCase => ({
  name: `the consumer of a ${what} that is paused is down, and says so, until it is unpaused`,
  run: async (server) => {
    const queue = queueName("paused")
    const runs: Array<Run> = []
    await on(server.direct, (broker) =>
      Effect.gen(function* () {
        yield* make(server, queue, "requeue")
        const consumer = yield* consume(queue, runs)
        const other = yield* consume(queueName("other"), [])
        assert.strictEqual(state(consumer), "running ")
        yield* post(server.http, `${what}/pause?topic=${queue}&channel=requeue`)
        yield* until("a consumer that is down", () => state(consumer).startsWith("down "))
        assert.match(state(consumer), new RegExp(`channel requeue of the topic ${queue}, or the topic, is paused`))
        assert.strictEqual(state(other), "running ")
        yield* publishAll(broker, queue, ["m"])
        yield* post(server.http, `${what}/unpause?topic=${queue}&channel=requeue`)
        yield* until("a consumer that runs", () => state(consumer) === "running ")
        yield* until("the message", () => runs.length === 1)
      })
    )
  }
})

const half: OwnCase = {
  name: "a channel that is paused on one nsqd of two leaves its consumer running",
  run: async (server) => {
    const [some, whole] = [queueName("half"), queueName("whole")]
    await on(server.direct, () =>
      Effect.gen(function* () {
        for (const queue of [some, whole]) yield* make(server, queue, "requeue")
        yield* post(server.http.slice(0, 1), `channel/pause?topic=${some}&channel=requeue`)
        const consumer = yield* consume(some, [])
        // It is asked later than the first one, which was asked by then.
        const later = yield* consume(whole, [])
        yield* post(server.http, `channel/pause?topic=${whole}&channel=requeue`)
        yield* until("one that is down", () => state(later).startsWith("down "))
        assert.strictEqual(state(consumer), "running ")
      })
    )
  }
}

/** What is published behind all the rest: where it runs, nothing is left to come. */
const last = "last"

/** The bytes of a message that was stored twice, published once more: to the nsqd of the twin that ran first, or to the other. */
const again = (concurrency: 1 | 2, place: 0 | 1): OwnCase => ({
  name: `bytes of a twin that somebody publishes again run again: ${concurrency} ran, on ${["the same", "the other"][place]} nsqd`,
  run: async (server) => {
    const queue = queueName("again")
    const runs: Array<string> = []
    const of = async (wanted: string) =>
      (await channels(server.http, queue)).filter(({ name, topic }) => name === wanted && topic === queue)
    const isDone = async () => (await of("requeue")).every(({ isFinished }) => isFinished)
    // Twins that are both here before one is finished both run.
    const held = concurrency === 1 ? server.http.slice(1) : []
    const isLeft = async () =>
      (await of("requeue")).every(({ http, isFinished, ready }) => (held.includes(http) ? ready === 1 : isFinished))
    await on({ ...server.direct, publishTo: 2 }, (broker) =>
      Effect.gen(function* () {
        yield* make(server, queue, "tap")
        yield* make(server, queue, "requeue")
        yield* post(held, `channel/pause?topic=${queue}&channel=requeue`)
        const all = yield* Deferred.make<void>()
        yield* consume(queue, [], { concurrency }, (message) => {
          runs.push(message.body === last ? last : NsqNative.of(message)!.nsqd)
          return runs.length <= concurrency ? Deferred.await(all) : undefined
        })
        yield* broker.publish([outgoing(queue, "m")])
        yield* until("its runs", () => runs.length === concurrency)
        yield* Deferred.succeed(all, undefined)
        yield* until("its ends", isLeft)
        yield* post(held, `channel/unpause?topic=${queue}&channel=requeue`)
        yield* until("the end of its twin", isDone)
        const http = server.http[(server.direct.nsqd!.indexOf(runs[0]!) + place) % 2]!
        const isIn = (channel: Channel) => channel.http === http && channel.ready - channel.untaken === 1
        const look = Effect.promise(async () => (await of("tap")).find(isIn))
        const tap = yield* found("its bytes", look)
        const [body, ...more] = yield* Effect.promise(() => drain(tap))
        assert.lengthOf(more, 0)
        yield* post([http], `pub?topic=${queue}`, new Uint8Array(Buffer.from(body!, "latin1")))
        yield* post([http], `pub?topic=${queue}`, new Uint8Array(Buffer.from(JSON.stringify(last))))
        yield* until("the last run", () => runs.includes(last))
      })
    )
    assert.lengthOf(runs, concurrency + 2)
  }
})

/** More than nsqd takes, and less than it is said to take. */
const large = { body: new Uint8Array(1.5 * 2 ** 20), option: 2 * 2 ** 20 }

const neighbours: OwnCase = {
  name: "of messages that are published in one turn, one that nsqd refuses is refused, and no neighbour",
  run: async (server) => {
    const queue = queueName("neighbours")
    const options = { ...first(server), http: false, maxMsgSize: large.option, publishTimeout: 3000 } as const
    await on(options, (broker) =>
      Effect.gen(function* () {
        const messages = ["a", "b", "c", "d"].map((id) => outgoing(queue, id))
        const some = messages.with(2, { ...messages[2]!, body: large.body })
        const results = yield* Effect.forEach(some, (message) => Effect.result(broker.publish([message])), {
          concurrency: "unbounded"
        })
        const reasons = results.map((result) => (Result.isSuccess(result) ? "sent" : result.failure.reason))
        assert.deepStrictEqual(reasons, ["sent", "sent", "BodyTooLarge", "sent"])
        assert.deepStrictEqual(yield* Effect.promise(() => stored(server.http.slice(0, 1), queue)), [3])
      })
    )
  }
}

export const cases: ReadonlyArray<OwnCase> = [
  neighbours,
  refused("FIN", "Succeeded", "Ack"),
  refused("REQ", "RetryScheduled", "Retry"),
  ...leases,
  paused("channel"),
  paused("topic"),
  half,
  again(1, 0),
  again(1, 1),
  again(2, 0),
  again(2, 1)
]
