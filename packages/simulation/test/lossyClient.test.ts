/** The client of daemons that forget: the rules of the port, on top of what the daemons promise. */
import { assert, describe, it } from "@effect/vitest"
import { RetryPolicy } from "@requeue/core"
import { type Broker, type Delivery, Metadata, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Client from "../src/lossy/Client.ts"
import type { Settings } from "../src/lossy/Protocol.ts"
import type { Server } from "../src/lossy/Server.ts"
import type { Scenario } from "../src/Scenario.ts"
import * as Machine from "../src/world/Machine.ts"
import { numberOf } from "../src/world/Parcels.ts"
import { begin, type Begun, daemon, parcel, second, settings } from "./lossyWorld.ts"

/** A client of one or two daemons, and what it has received. */
const client = (
  begun: Begun,
  servers: ReadonlyArray<Server>,
  { isExact = false, name = "a1", own = {} }: { isExact?: boolean; name?: string; own?: Partial<Settings> } = {}
) => {
  const machine = Machine.make(begun.world, name, Machine.trueClock)
  const service = Client.make(begun.world, machine, { servers, settings: { ...settings, ...own }, isExact })
  const scope = Effect.runSync(Scope.make())
  const arrived: Array<Delivery.Delivery> = []
  const lost: Array<ReadonlyArray<number>> = []

  const run = <A, E>(effect: Effect.Effect<A, E>, millis = 10): Exit.Exit<A, E> | undefined => {
    let result: Exit.Exit<A, E> | undefined
    machine.run(effect).addObserver((exit) => (result = exit))
    begun.pass(millis)
    return result
  }
  const subscribe = (credit: number): Broker.Subscription => {
    const options: Broker.SubscribeOptions = {
      queue: "work",
      retry: RetryPolicy.make(),
      deadLetterQueues: [],
      onDelivery: (delivery) => arrived.push(delivery),
      onReconnect: (isGone = () => true) => lost.push(arrived.filter(isGone).map(numberOf))
    }
    const exit = run(Scope.provide(service.subscribe(options), scope))
    if (exit === undefined || Exit.isFailure(exit)) throw new Error("it could not subscribe")
    exit.value.credit(credit)
    begun.pass(10)
    return exit.value
  }
  return {
    machine,
    service,
    run,
    subscribe,
    arrived,
    lost,
    close: () => run(Scope.close(scope, Exit.void), 3 * second)
  }
}

const error = { name: "Error", message: "it failed" }
const letter = Settlement.DeadLetter("permanent", "work.dlq", error)

/** A daemon with one message, and a client that has it. */
const withOne = (
  only: ReadonlyArray<string> = [],
  more: Partial<Scenario> = {},
  options: { readonly isExact?: boolean; readonly own?: Partial<Settings> } = {}
) => {
  const begun = begin(only, more)
  const server = daemon(begun, "nsqd1", options.own)
  server.publish("work", parcel(1))
  const one = client(begun, [server], options)
  const subscription = one.subscribe(5)
  /** Settles a delivery, and answers how it failed. */
  const settle = (settlement: Settlement.Settlement, millis = 10, nth = 0) => {
    const exit = one.run(subscription.settle([{ delivery: one.arrived[nth]!, settlement }]), millis)
    if (exit === undefined || Exit.isFailure(exit)) return "no answer"
    return exit.value.map(({ error: { reason }, fate, smaller }) => ({ reason, fate, smaller }))
  }
  const now = (): number => Machine.epoch + begun.world.now()
  return { begun, server, subscription, settle, now, ...one }
}

const attemptsOf = (deliveries: ReadonlyArray<Delivery.Delivery>): ReadonlyArray<number> =>
  deliveries.map(({ attempts }) => attempts)

describe("a client", () => {
  it("finishes what is acknowledged", () => {
    const { begun, settle } = withOne()
    assert.deepStrictEqual(settle(Settlement.Ack), [])
    assert.deepInclude(begun.facts("Gone").at(-1), { key: 1, why: "settled" })
  })

  it("finishes unseen what it has finished, and comes again because the FIN was lost", () => {
    const { arrived, begun, lost, server, settle } = withOne()
    assert.deepStrictEqual(settle(Settlement.Ack, 0), [])
    server.restart("orderly", second)
    begun.pass(5 * second)
    assert.deepStrictEqual(
      begun.facts("HandedOut").map(({ count }) => count),
      [1, 2]
    )
    assert.deepInclude(begun.facts("Gone").at(-1), { key: 1, why: "settled" })
    assert.strictEqual(arrived.length, 1)
    assert.deepStrictEqual(lost, [arrived.map(numberOf)])
  })

  it("names a message by its daemon and its id, the same for each delivery", () => {
    const { arrived, begun, subscription } = withOne()
    begun.pass(11 * second)
    const [first, again] = arrived.map((delivery) => subscription.identify!(delivery))
    assert.deepStrictEqual([again, attemptsOf(arrived)], [first, [1, 2]])
  })

  it("requeues a retry within the cap, and knows when it is due though a daemon that ended in order does not", () => {
    const { arrived, begun, close, now, server, settle } = withOne()
    const due = now() + 50 * second
    assert.deepStrictEqual(settle(Settlement.Retry(50 * second, error)), [])
    assert.strictEqual(begun.facts("Stored").filter(({ key }) => key === 1).length, 1)
    server.restart("orderly", second)
    begun.pass(5 * second)
    assert.deepStrictEqual(attemptsOf(arrived), [1, 2])
    assert.approximately(arrived[1]!.metadata.notBefore, due, 1)
    close()
    const other = client(begun, [server], { name: "b1" })
    other.subscribe(1)
    assert.deepStrictEqual(
      other.arrived.map(({ attempts, metadata }) => [attempts, metadata.notBefore]),
      [[3, 0]]
    )
  })

  it("stores a copy for a longer retry, in hops of the cap that keep its time", () => {
    const { arrived, begun, now, settle } = withOne()
    const due = now() + 90 * second
    assert.deepStrictEqual(settle(Settlement.Retry(90 * second, error)), [])
    begun.pass(61 * second)
    assert.approximately(arrived[1]!.metadata.notBefore, due, 1)
    assert.deepStrictEqual(settle(Settlement.Release(due - now()), 10, 1), [])
    begun.pass(31 * second)
    assert.deepStrictEqual(attemptsOf(arrived), [1, 2, 2])
    assert.approximately(arrived[2]!.metadata.notBefore, due, 1)
  })

  it("asks no clock but the daemon's whether the delay of a copy is over", () => {
    const { arrived, begun, settle } = withOne([], {}, { isExact: true })
    assert.deepStrictEqual(settle(Settlement.Retry(second, error)), [])
    begun.pass(2 * second)
    assert.strictEqual(arrived[1]!.metadata.notBefore, 0)
  })

  it("stores a copy for every retry where it is exact, before it finishes the original", () => {
    const { arrived, begun, settle } = withOne([], {}, { isExact: true })
    assert.deepStrictEqual(settle(Settlement.Retry(second, error)), [])
    const facts = begun.history("Stored", "Gone")
    assert.deepStrictEqual(facts.slice(-2), ["Stored", "Gone"])
    begun.pass(2 * second)
    assert.strictEqual(arrived[1]!.metadata.history.length, 1)
  })

  it("requeues a retry whose copy is refused, and holds a dead letter whose copy is refused", () => {
    for (const reason of ["BodyTooLarge", "AccessRefused"] as const) {
      const refusals = [{ key: 1, of: "copy", until: 5, reason }] as const
      const { begun, settle } = withOne([], { refusals }, { isExact: true })
      assert.deepStrictEqual(settle(letter), [{ reason, fate: "rejected", smaller: reason === "BodyTooLarge" }])
      assert.deepStrictEqual(settle(Settlement.Retry(second, error)), [])
      assert.deepInclude(begun.facts("Back")[0], { why: "asked" })
    }
  })

  it("extends leases, and tells which deliveries are gone", () => {
    const { begun, run, settle, subscription, arrived } = withOne()
    begun.pass(9 * second)
    const touched = run(subscription.extend(arrived))
    assert.deepStrictEqual(touched, Exit.succeed([]))
    begun.pass(9 * second)
    assert.deepStrictEqual(attemptsOf(arrived), [1])
    begun.pass(2 * second)
    assert.deepStrictEqual(attemptsOf(arrived), [1, 2])
    assert.deepStrictEqual(settle(Settlement.Ack), [{ reason: "LeaseLost", fate: "lost", smaller: undefined }])
    assert.deepStrictEqual(settle(Settlement.Ack, 10, 1), [])
  })

  it("counts a lease as lost at its longest time, however often it was extended", () => {
    const { arrived, begun, run, settle, subscription } = withOne()
    subscription.credit(0)
    for (let nth = 0; nth < 4; nth++) {
      begun.pass(7 * second)
      assert.deepStrictEqual(run(subscription.extend(arrived)), Exit.succeed([]))
    }
    begun.pass(3 * second)
    assert.deepStrictEqual(settle(Settlement.Ack), [{ reason: "LeaseLost", fate: "lost", smaller: undefined }])
  })

  it("takes a FIN for taken that comes too late, because nobody says so: the message runs again elsewhere", () => {
    const { begun, server, settle, subscription } = withOne(["echo nsqd1 clock 1"])
    subscription.credit(0)
    const other = client(begun, [server], { name: "b1" })
    other.subscribe(1)
    begun.pass(9 * second)
    assert.deepStrictEqual(attemptsOf(other.arrived), [2])
    assert.deepStrictEqual(settle(Settlement.Ack), [])
    assert.strictEqual(server.counts("work").inFlight, 1)
  })

  it("holds what it could not settle, and tells why", () => {
    const busy = withOne(["busy a1 publish nsqd1 1"])
    assert.deepStrictEqual(busy.settle(letter), [{ reason: "Throttled", fate: "transient", smaller: false }])
    assert.deepStrictEqual(busy.settle(letter), [])
  })

  it("does not know what becomes of a copy whose answer takes longer than it waits", () => {
    const outcomes = new Set<string>()
    for (let seed = 1; seed <= 20; seed++) {
      const own = { lease: 60 * second, longestLease: 60 * second }
      const { begun, settle } = withOne(["late a1 to nsqd1 3"], { seed }, { own })
      outcomes.add(JSON.stringify(settle(letter, 15 * second)))
      begun.pass(10 * second)
      assert.isAbove(begun.facts("Stored").filter(({ queue }) => queue === "work.dlq").length, 0)
    }
    const unknown = [{ reason: "Timeout", fate: "unknown", smaller: false }]
    assert.deepStrictEqual(outcomes, new Set(["[]", JSON.stringify(unknown)]))
  })

  it("gives back at once what it has when it closes", () => {
    const { begun, close, server } = withOne()
    close()
    assert.deepInclude(begun.facts("Back")[0], { why: "asked" })
    assert.deepStrictEqual(server.counts("work"), { ready: 1, inFlight: 0, delayed: 0 })
  })
})

const daemonOf = ({ identify }: Broker.Subscription, delivery: Delivery.Delivery): string | undefined =>
  identify!(delivery)?.split(" ")[0]

describe("a client of two daemons", () => {
  const two = () => {
    const begun = begin()
    const servers = [daemon(begun, "nsqd1"), daemon(begun, "nsqd2")]
    return { begun, servers, ...client(begun, servers) }
  }
  const message = {
    queue: "work",
    body: parcel(1).body,
    headers: {},
    delay: 0,
    metadata: Metadata.make("m1", Machine.epoch)
  }

  it("writes a publish again on the other one when its connection breaks, so that both may have it", () => {
    const { begun, machine, servers, service } = two()
    const before = begun.facts("Stored").length
    let result: unknown
    machine.run(service.publish([message])).addObserver((exit) => (result = exit))
    while (begun.facts("Stored").length === before) begun.world.step(Infinity)
    for (const server of servers) if (server.counts("work").ready === 1) server.restart("orderly", second)
    begun.pass(10)
    assert.deepStrictEqual(result, Exit.void)
    assert.deepStrictEqual(
      servers.map(({ counts }) => counts("work").ready),
      [1, 1]
    )
  })

  it("is down, and publishes nothing, while both are", () => {
    const { begun, run, servers, service } = two()
    for (const server of servers) server.restart("orderly", 15 * second)
    begun.pass(10)
    assert.strictEqual(service.connection().state, "down")
    const exit = run(service.publish([message]), 11 * second)
    assert.deepInclude(exit === undefined ? undefined : Exit.findErrorOption(exit), { _tag: "Some" })
    begun.pass(11 * second)
    assert.strictEqual(service.connection().state, "up")
  })

  it("shares a credit of one between them by turns", () => {
    const { arrived, begun, run, servers, subscribe } = two()
    for (const [index, server] of servers.entries()) {
      for (const key of [1, 2, 3]) server.publish("work", parcel(10 * (index + 1) + key))
    }
    const subscription = subscribe(1)
    begun.pass(second)
    for (let nth = 0; nth < 6; nth++) {
      assert.strictEqual(arrived.length, nth + 1)
      // The other one has waited.
      if (nth > 0)
        assert.notStrictEqual(daemonOf(subscription, arrived[nth]!), daemonOf(subscription, arrived[nth - 1]!))
      run(subscription.settle([{ delivery: arrived[nth]!, settlement: Settlement.Ack }]), second)
    }
    assert.strictEqual(
      new Set(
        begun
          .facts("Gone")
          .slice(2)
          .map(({ key }) => key)
      ).size,
      6
    )
  })

  it("loses with a daemon what that has delivered, and nothing else", () => {
    const { begun, lost, servers, subscribe } = two()
    for (const server of servers) server.publish("work", parcel(1))
    subscribe(2)
    servers[0]!.restart("orderly", second)
    begun.pass(5 * second)
    assert.strictEqual(lost.length, 1)
    assert.strictEqual(lost[0]!.length, 1)
  })

  it("counts and removes what waits on both", () => {
    const { begun, run, servers, service } = two()
    for (const server of servers) server.publish("work", parcel(1))
    const { counts, purge } = service.admin
    assert.deepStrictEqual(run(counts("work")), Exit.succeed({ ready: 2, inFlight: 0, delayed: 0 }))
    assert.deepStrictEqual(run(purge("work"), 4 * second), Exit.succeed(2))
    assert.deepStrictEqual(run(counts("work")), Exit.succeed({ ready: 0, inFlight: 0, delayed: 0 }))
    assert.strictEqual(begun.facts("Gone").filter(({ why }) => why === "purged").length, 4)
  })

  it("removes one by one what waits while others have something", () => {
    const { begun, run, servers, service, subscribe } = two()
    servers[0]!.publish("work", parcel(1))
    const subscription = subscribe(1)
    subscription.credit(0)
    for (const server of servers) server.publish("work", parcel(2))
    assert.deepStrictEqual(run(service.admin.purge("work"), 4 * second), Exit.succeed(2))
    assert.strictEqual(servers[0]!.counts("work").inFlight, 1)
    assert.strictEqual(begun.facts("Gone").filter(({ why }) => why === "settled").length, 2)
  })
})
