/** The broker with leases: what it promises, and each of its unkindnesses. */
import { assert, describe, it } from "@effect/vitest"
import { RetryPolicy } from "@requeue/core"
import { type Broker, type Delivery, Metadata, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Generate from "../src/Generate.ts"
import type { Entry } from "../src/History.ts"
import * as Client from "../src/lease/Client.ts"
import type * as Leases from "../src/lease/Leases.ts"
import * as Server from "../src/lease/Server.ts"
import type { Scenario } from "../src/Scenario.ts"
import * as Simulation from "../src/Simulation.ts"
import * as Calls from "../src/world/Calls.ts"
import * as Machine from "../src/world/Machine.ts"
import type { Parcel } from "../src/world/Store.ts"
import * as World from "../src/world/World.ts"

const second = 1000
const lease = 10 * second

/** A world in which exactly these faults happen. */
const begin = (only: ReadonlyArray<string> = [], more: Partial<Scenario> = {}) => {
  const bare = { sendings: [], operations: [], processes: [], refusals: [], latency: 1, calmAt: 1e9 }
  const world = World.make({ ...Generate.scenario(1, ["lease"]), ...bare, lease, only, ...more })
  const server = Server.make(world)
  const calls = Calls.make(world)
  const pass = (millis: number): void => {
    const until = world.now() + millis
    world.after(millis, () => {})
    while (world.step(until)) continue
  }
  const facts = <Tag extends Entry["_tag"]>(tag: Tag) =>
    world.history.filter((entry): entry is Extract<Entry, { readonly _tag: Tag }> => entry._tag === tag)
  return { world, server, calls, pass, facts }
}

type Begun = ReturnType<typeof begin>

const parcel = (key: number): Parcel => ({
  body: Buffer.from(`{"key":${key}}`),
  headers: {},
  metadata: undefined,
  nonce: undefined
})

const publish = ({ server }: Begun, ...keys: ReadonlyArray<number>): void => {
  for (const key of keys) server.publish("work", parcel(key), () => {})
}

/** Polls without waiting. */
const receive = (begun: Begun, count = 1, queue = "work"): ReadonlyArray<Leases.Received> => {
  let found: ReadonlyArray<Leases.Received> = []
  begun.server.receive({ process: "a1", queue, count, lease, wait: 0 }, (messages) => void (found = messages))
  begun.pass(0)
  return found
}

const sendingOf = (key: number, seconds: number): Server.Sending => ({ parcel: parcel(key), seconds, of: undefined })

describe("a server with leases", () => {
  it("hides what it hands out until the lease ends, and counts", () => {
    const begun = begin()
    publish(begun, 1)
    assert.deepStrictEqual(
      receive(begun).map(({ count }) => count),
      [1]
    )
    begun.pass(lease - 1)
    assert.deepStrictEqual(receive(begun), [])
    begun.pass(1)
    assert.deepStrictEqual(
      receive(begun).map(({ count }) => count),
      [2]
    )
    assert.deepStrictEqual(
      begun.facts("Back").map(({ why }) => why),
      ["lease"]
    )
  })

  it("brings fewer messages than there are, not in their order, and all of them in the end", () => {
    const begun = begin()
    publish(begun, 1, 2, 3, 4, 5, 6, 7, 8)
    const sizes: Array<number> = []
    for (let left = 8; left > 0; left -= sizes.at(-1)!) sizes.push(receive(begun, 10).length)
    const keys = begun.facts("HandedOut").map(({ key }) => key)
    assert.isAbove(sizes.length, 1)
    assert.notDeepEqual(
      keys,
      keys.toSorted((one, other) => one - other)
    )
    assert.deepStrictEqual(
      keys.toSorted((one, other) => one - other),
      [1, 2, 3, 4, 5, 6, 7, 8]
    )
  })

  it("answers a poll that waits as soon as a message comes, or with nothing when its time is over", () => {
    const begun = begin()
    const answers: Array<readonly [at: number, count: number]> = []
    const poll = (): void =>
      begun.server.receive({ process: "a1", queue: "work", count: 10, lease, wait: 20 * second }, (messages) =>
        answers.push([begun.world.now(), messages.length])
      )
    poll()
    begun.pass(5 * second)
    publish(begun, 1)
    poll()
    begun.pass(20 * second)
    assert.deepStrictEqual(answers, [
      [5 * second, 1],
      [15 * second, 1]
    ])
  })

  it("keeps a delay of 15 minutes, and takes none that is longer or no whole number of seconds", () => {
    const begun = begin()
    const results = begun.server.send("a1", "work", [sendingOf(1, 900), sendingOf(2, 901), sendingOf(3, 0.5)])
    assert.deepStrictEqual(results, [undefined, "Unsupported", "Unsupported"])
    assert.strictEqual(begun.facts("Defect").length, 2)
    begun.pass(900 * second - 1)
    assert.deepStrictEqual(receive(begun), [])
    begun.pass(1)
    assert.strictEqual(receive(begun).length, 1)
  })

  it("extends a lease from the call on, to 12 hours after the receive at most", () => {
    const begun = begin()
    publish(begun, 1)
    const { handle } = receive(begun)[0]!
    const hide = (seconds: number) => begun.server.hide("a1", [{ handle, seconds, isBack: false }])[0]
    begun.pass(5 * second)
    assert.isUndefined(hide(10))
    begun.pass(9 * second)
    assert.deepStrictEqual(receive(begun), [])
    assert.isUndefined(hide(43_200 - 14))
    assert.strictEqual(hide(43_200 - 13), "LeaseLost")
    begun.pass((43_200 - 14) * second)
    assert.strictEqual(receive(begun).length, 1)
  })

  it("hands a message that was given back out when it is due", () => {
    const begun = begin()
    publish(begun, 1)
    const { handle } = receive(begun)[0]!
    begun.server.hide("a1", [{ handle, seconds: 60, isBack: true }])
    begun.pass(60 * second - 1)
    assert.deepStrictEqual(receive(begun), [])
    begun.pass(1)
    assert.strictEqual(receive(begun).length, 1)
    assert.deepInclude(begun.facts("Back")[0], { why: "asked", due: 60 * second })
  })

  it("removes a message by its last receipt, also after the lease", () => {
    const begun = begin()
    publish(begun, 1)
    const { handle } = receive(begun)[0]!
    begun.pass(2 * lease)
    assert.deepStrictEqual(begun.server.remove("a1", [handle], "settled"), [undefined])
    assert.strictEqual(begun.facts("Gone").length, 1)
    assert.deepStrictEqual(receive(begun), [])
    assert.deepStrictEqual(begun.server.remove("a1", [handle], "settled"), [undefined])
  })

  it("does nothing for a receipt that is not the last one, whether it refuses it or not", () => {
    const answers = new Set<unknown>()
    for (let seed = 1; seed <= 20; seed++) {
      const begun = begin([], { seed })
      publish(begun, 1)
      const { handle } = receive(begun)[0]!
      begun.pass(lease)
      receive(begun)
      const [hidden] = begun.server.hide("a1", [{ handle, seconds: 600, isBack: false }])
      const [removed] = begun.server.remove("a1", [handle], "settled")
      for (const answer of [hidden, removed]) answers.add(answer)
      begun.pass(lease)
      assert.strictEqual(receive(begun)[0]?.count, 3)
    }
    assert.deepStrictEqual(answers, new Set([undefined, "LeaseLost"]))
  })

  it("moves what was received too often with the next receive; its count goes on there", () => {
    const begun = begin()
    begun.server.declare("work", { to: "work.dlq", maxReceiveCount: 2 })
    publish(begun, 1)
    for (const count of [1, 2]) {
      assert.strictEqual(receive(begun)[0]?.count, count)
      begun.pass(lease)
    }
    assert.deepStrictEqual(begun.facts("Gone"), [])
    assert.deepStrictEqual(receive(begun), [])
    assert.deepInclude(begun.facts("Gone")[0], { why: "backstop" })
    assert.deepInclude(receive(begun, 1, "work.dlq")[0], { count: 3, movedFrom: "work" })
  })

  it("hands a message out twice though its lease is not over", () => {
    const begun = begin(["echo a1 receive work 1"])
    publish(begun, 1)
    const [first] = receive(begun)
    const [again] = receive(begun)
    assert.strictEqual(again?.messageId, first?.messageId)
    assert.notStrictEqual(again?.handle, first?.handle)
    assert.deepStrictEqual(receive(begun), [])
  })

  it("hands a message out again that it has removed, as it says", () => {
    const begun = begin(["echo a1 remove 1"])
    publish(begun, 1)
    assert.deepStrictEqual(begun.server.remove("a1", [receive(begun)[0]!.handle], "settled"), [undefined])
    begun.pass(lease)
    assert.strictEqual(receive(begun).length, 1)
  })

  it("fails single entries of a batch, and refuses single messages", () => {
    const refusals = [{ key: 3, of: "copy", until: 5, reason: "BodyTooLarge" }] as const
    const begun = begin(["busy a1 send work entry 2"], { refusals })
    const results = begun.server.send("a1", "work", [sendingOf(1, 0), sendingOf(2, 0), sendingOf(3, 0)])
    assert.deepStrictEqual(results, [undefined, "Throttled", "BodyTooLarge"])
    assert.deepStrictEqual(
      begun.facts("Stored").map(({ key }) => key),
      [1]
    )
  })

  it("counts wrongly, until nothing has happened for a minute", () => {
    const begun = begin()
    publish(begun, ...Array.from({ length: 50 }, (_, index) => index))
    const told = new Set(Array.from({ length: 20 }, () => begun.server.counts("work").ready))
    assert.isAbove(told.size, 5)
    begun.pass(60 * second)
    assert.deepStrictEqual(begun.server.counts("work"), { ready: 50, inFlight: 0, delayed: 0 })
  })
})

describe("a call", () => {
  /** Makes a call that acts once, or each time it is made, and tells when it acted and how it ended. */
  const call = (only: ReadonlyArray<string>, prepare: (begun: Begun) => void = () => {}, repeats = true) => {
    const begun = begin(only)
    const acts: Array<number> = []
    const ends: Array<readonly [at: number, outcome: Calls.Outcome<string>]> = []
    const machine = Machine.make(begun.world, "a1", Machine.trueClock)
    prepare(begun)
    begun.calls.make<string>({
      machine,
      place: "here",
      timeout: 10 * second,
      repeats,
      act: (answer) => {
        acts.push(begun.world.now())
        answer("done")
      },
      onEnd: (outcome) => void ends.push([begun.world.now(), outcome])
    })
    begun.pass(60 * second)
    return { acts, ends, outcomes: ends.map(([, outcome]) => outcome) }
  }

  it("acts, and is answered", () => {
    const { acts, outcomes } = call([])
    assert.strictEqual(acts.length, 1)
    assert.deepStrictEqual(outcomes, [{ value: "done" }])
  })

  it("does nothing when its request is lost, and has acted when its answer is; nobody can tell", () => {
    for (const [fault, count] of [
      ["lostRequest", 0],
      ["lostAnswer", 1]
    ] as const) {
      const { acts, ends } = call([`${fault} here 1`])
      assert.strictEqual(acts.length, count)
      assert.deepStrictEqual(ends, [[10 * second, { failure: "Timeout" }]])
    }
  })

  it("acts late, perhaps when nobody waits any more", () => {
    const lateness = Array.from({ length: 20 }, (_, nth) => {
      const begun = begin(["late here 1"], { seed: nth })
      let [actedAt, end]: [number, unknown] = [0, undefined]
      begun.calls.make<undefined>({
        machine: Machine.make(begun.world, "a1", Machine.trueClock),
        place: "here",
        timeout: 10 * second,
        repeats: true,
        act: (answer) => {
          actedAt = begun.world.now()
          answer(undefined)
        },
        onEnd: (outcome) => void (end = outcome)
      })
      begun.pass(60 * second)
      return [actedAt > 10 * second, end] as const
    })
    for (const [isLate, end] of lateness) {
      assert.deepStrictEqual(end, isLate ? { failure: "Timeout" } : { value: undefined })
    }
    assert.deepStrictEqual(new Set(lateness.map(([isLate]) => isLate)), new Set([true, false]))
  })

  it("is made again by the driver when its first request had no answer, unless it must not be", () => {
    const { acts, outcomes } = call(["twice here 1"])
    assert.strictEqual(acts.length, 2)
    assert.deepStrictEqual(outcomes, [{ value: "done" }])
    assert.strictEqual(call(["twice here 1"], undefined, false).acts.length, 1)
  })

  it("ends at once when its connection is cut, whether it has acted or not", () => {
    const { ends, outcomes } = call(["cut here 1"])
    assert.deepStrictEqual(outcomes, [{ failure: "ConnectionLost" }])
    assert.isBelow(ends[0]![0], second)
  })

  it("is refused, and does nothing, when the server is busy", () => {
    for (const throttled of [call(["busy here 1"]), call([], ({ calls }) => calls.throttle(second))]) {
      assert.deepStrictEqual([throttled.acts, throttled.outcomes], [[], [{ failure: "Throttled" }]])
    }
  })

  it("fails at once while the server is down, and when it goes down", () => {
    assert.deepStrictEqual(call([], ({ calls }) => calls.restart(second)).outcomes, [{ failure: "ConnectionFailed" }])
    const { acts, outcomes } = call([], ({ calls, world }) => void world.after(0, () => calls.restart(second)))
    assert.deepStrictEqual([acts, outcomes], [[], [{ failure: "ConnectionLost" }]])
  })
})

/** A consumer of this queue, as the core uses it. */
const consume = (begun: Begun, maxAttempts = 3) => {
  const { calls, pass, server, world } = begun
  const machine = Machine.make(world, "a1", Machine.trueClock)
  const service = Client.make(world, machine, calls, server)
  const seen: Array<Delivery.Delivery> = []
  const scope = Effect.runSync(Scope.make())
  const ends = new Map<number, unknown>()
  let nth = 0
  /** Runs an effect in the process, and answers a function that tells its result. */
  const start = <A, E>(effect: Effect.Effect<A, E>): (() => A) => {
    const number = nth++
    machine.run(effect).addObserver((exit) => void ends.set(number, Exit.isSuccess(exit) ? exit.value : exit))
    return () => ends.get(number) as A // `start` put it there.
  }
  const subscribing = service.subscribe({
    queue: "work",
    retry: RetryPolicy.make({ maxAttempts }),
    deadLetterQueues: ["work.dlq"],
    onDelivery: (delivery) => void seen.push(delivery),
    onReconnect: () => assert.fail("leases know no connections")
  })
  const subscribed = start(Scope.provide(subscribing, scope))
  pass(100)
  const subscription = subscribed()
  subscription.credit(10)
  pass(100)
  return {
    machine,
    service,
    seen,
    subscription,
    start,
    settle: (delivery: Delivery.Delivery, settlement: Settlement.Settlement) =>
      start(subscription.settle([{ delivery, settlement }])),
    close: () => start(Scope.close(scope, Exit.void))
  }
}

const fatesOf = (failures: ReadonlyArray<Broker.SettleFailure>) => failures.map(({ fate }) => fate)

const deadLetter = Settlement.DeadLetter("permanent", "work.dlq", { name: "Error", message: "no" })

describe("a client with leases", () => {
  it("delivers within its credit, and its acks remove", () => {
    const begun = begin()
    publish(begun, 1, 2, 3)
    const { seen, settle, subscription } = consume(begun)
    subscription.credit(2)
    begun.pass(second)
    const before = seen.length
    const failures = settle(seen[0]!, Settlement.Ack)
    begun.pass(second)
    assert.deepStrictEqual([failures(), begun.facts("Gone").length], [[], 1])
    assert.isAtMost(before, 3)
    assert.strictEqual(seen.length, 3)
  })

  it("names a copy by what the server calls it: the same for each delivery, another for each copy", () => {
    const begun = begin()
    publish(begun, 1, 1)
    const { seen, subscription } = consume(begun)
    begun.pass(2 * lease)
    const names = seen.map((delivery) => subscription.identify!(delivery))
    assert.isAbove(seen.length, 2)
    assert.strictEqual(new Set(names).size, 2)
    assert.strictEqual(seen[0]!.metadata.id, names[0])
  })

  it("hides a retry for its delay, in whole seconds, and the attempt counts", () => {
    const begun = begin()
    publish(begun, 1)
    const { seen, settle } = consume(begun)
    const failures = settle(seen[0]!, Settlement.Retry(1500))
    begun.pass(100)
    assert.deepStrictEqual(failures(), [])
    begun.pass(1800)
    assert.strictEqual(seen.length, 1)
    begun.pass(200)
    assert.deepStrictEqual(
      seen.map(({ attempts }) => attempts),
      [1, 2]
    )
  })

  it("copies a retry that is longer than 12 hours, in hops of 15 minutes", () => {
    const begun = begin()
    publish(begun, 1)
    const { seen, settle } = consume(begun)
    settle(seen[0]!, Settlement.Retry(13 * 3600 * second))
    begun.pass(900 * second + 100)
    assert.strictEqual(begun.facts("Stored").length, 2)
    assert.deepInclude(begun.facts("Gone")[0], { why: "settled" })
    const hop = seen[1]!
    assert.strictEqual(hop.attempts, 2)
    assert.isAbove(Metadata.wait(hop.metadata, Machine.epoch + begun.world.now(), Infinity), 12 * 3600 * second)
    settle(hop, Settlement.Release(3600 * second))
    begun.pass(900 * second + 200)
    assert.strictEqual(seen[2]!.attempts, 2)
  })

  it("tells `unknown` when no answer came, and `transient` when the server was busy; both can be settled again", () => {
    for (const [fault, fate] of [
      ["lostAnswer a1 remove 1", "unknown"],
      ["busy a1 remove 1", "transient"],
      ["busy a1 remove entry 1", "transient"]
    ] as const) {
      const begun = begin([fault], { lease: 60 * second })
      publish(begun, 1)
      const { seen, settle } = consume(begun)
      const first = settle(seen[0]!, Settlement.Ack)
      begun.pass(11 * second)
      assert.deepStrictEqual(fatesOf(first()), [fate])
      const again = settle(seen[0]!, Settlement.Ack)
      begun.pass(second)
      assert.deepStrictEqual([again(), begun.facts("Gone").length], [[], 1])
    }
  })

  it("tells `rejected` for a copy that the server does not take, and keeps the message", () => {
    const refusals = [{ key: 1, of: "deadLetter", until: 5, reason: "BodyTooLarge" }] as const
    const begun = begin([], { refusals })
    publish(begun, 1)
    const { seen, settle } = consume(begun)
    const failures = settle(seen[0]!, deadLetter)
    begun.pass(second)
    assert.deepStrictEqual(
      failures().map(({ fate, smaller }) => [fate, smaller]),
      [["rejected", true]]
    )
    assert.deepStrictEqual(begun.facts("Gone"), [])
  })

  it("tells `gone` once the lease is over, without a copy", () => {
    const begun = begin()
    publish(begun, 1)
    const { seen, settle, subscription } = consume(begun)
    subscription.credit(0)
    begun.pass(lease)
    const failures = settle(seen[0]!, deadLetter)
    begun.pass(second)
    assert.deepStrictEqual(fatesOf(failures()), ["lost"])
    assert.strictEqual(begun.facts("Stored").length, 1)
  })

  it("copies the second try of a retry that had no answer: the first may still take effect", () => {
    const begun = begin(["lostRequest a1 hide 1"], { lease: 60 * second })
    publish(begun, 1)
    const { seen, settle } = consume(begun)
    settle(seen[0]!, Settlement.Retry(5 * second))
    begun.pass(11 * second)
    settle(seen[0]!, Settlement.Retry(5 * second))
    begun.pass(second)
    assert.strictEqual(begun.facts("Stored").length, 2)
  })

  it("removes a message whose copy is stored when it comes again, and delivers it no more", () => {
    const begun = begin(["lostRequest a1 remove 1"])
    publish(begun, 1)
    const { seen, settle } = consume(begun)
    const failures = settle(seen[0]!, deadLetter)
    begun.pass(3 * lease)
    assert.deepStrictEqual(failures(), [])
    assert.deepStrictEqual([seen.length, begun.facts("Gone").length], [1, 1])
    assert.strictEqual(begun.facts("Stored").length, 2)
  })

  it("extends leases, and tells when one is lost", () => {
    const begun = begin()
    publish(begun, 1)
    const { seen, start, subscription } = consume(begun)
    for (let nth = 0; nth < 5; nth++) {
      begun.pass(lease / 2)
      const extended = start(subscription.extend(seen))
      begun.pass(100)
      assert.deepStrictEqual(extended(), [])
    }
    assert.strictEqual(seen.length, 1)
    begun.pass(lease)
    const lost = start(subscription.extend(seen.slice(0, 1)))
    begun.pass(100)
    assert.deepStrictEqual(fatesOf(lost()), ["lost"])
  })

  it("gives back at its end what is unsettled, and what its last poll still brings, which may be the same", () => {
    const begun = begin()
    publish(begun, 1)
    const { close, seen } = consume(begun)
    const closed = close()
    begun.pass(30 * second)
    assert.isUndefined(closed())
    assert.deepStrictEqual(
      begun.facts("Back").map(({ why }) => why),
      ["asked", "asked"]
    )
    assert.deepStrictEqual([seen.length, receive(begun)[0]?.count], [1, 3])
  })

  it("leaves a poll behind when it is killed, which takes a message for the time of a lease", () => {
    const begun = begin()
    const { machine, seen } = consume(begun)
    machine.kill()
    publish(begun, 1)
    begun.pass(lease)
    assert.deepInclude(begun.facts("HandedOut")[0], { process: "a1", key: 1 })
    assert.deepStrictEqual([seen, begun.facts("Back").length], [[], 1])
  })

  it("publishes in calls of ten, and fails when one of its messages does", () => {
    const begun = begin(["busy a1 send work entry 12"])
    const { service, start, subscription } = consume(begun)
    subscription.credit(0)
    const outgoing = { queue: "work", body: Buffer.from("1"), headers: {}, delay: 0 }
    const messages = Array.from({ length: 12 }, () => ({ ...outgoing, metadata: Metadata.make("m", 1) }))
    const published = start(Effect.flip(service.publish(messages)))
    begun.pass(second)
    assert.strictEqual(published().reason, "Throttled")
    assert.strictEqual(begun.facts("Stored").length, 11)
  })

  it("purges by receives, which count", () => {
    const begun = begin()
    for (const key of [1, 2, 3]) begun.server.publish("letters", parcel(key), () => {})
    const { service, start } = consume(begun)
    const purged = start(service.admin.purge("letters"))
    begun.pass(10 * second)
    assert.strictEqual(purged(), 3)
    assert.deepStrictEqual(
      begun.facts("Gone").map(({ why }) => why),
      ["purged", "purged", "purged"]
    )
    assert.strictEqual(Math.max(...begun.facts("HandedOut").map(({ count }) => count)), 1)
  })
})

describe("runs on a broker with leases", () => {
  it("come to rest without a defect, and meet every kind of fault", async () => {
    const faults = new Set<string>()
    for (let seed = 1; seed <= 20; seed++) {
      const scenario = Generate.scenario(seed, ["lease"])
      const history = await Simulation.run(scenario)
      assert.deepInclude(history.at(-1), { _tag: "End", because: "rest" })
      assert.deepStrictEqual(
        history.filter(({ _tag }) => _tag === "Defect"),
        []
      )
      for (const entry of history) if (entry._tag === "Fault") faults.add(entry.kind)
    }
    assert.deepStrictEqual(faults, new Set(Object.keys(Generate.scenario(1).rates)))
  })
})
