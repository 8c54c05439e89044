/** Browsers on each kind of broker, while connections break and calls fail: what is not removed stays, and the history has it all. */
import { assert, describe, it } from "@effect/vitest"
import { type Broker, type Delivery, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Generate from "../src/Generate.ts"
import { calm, each } from "../src/generate/Shapes.ts"
import * as Nsq from "../src/nsq/index.ts"
import * as RabbitMq from "../src/rabbitmq/index.ts"
import * as Sqs from "../src/sqs/index.ts"
import type { Rates } from "../src/Scenario.ts"
import * as Machine from "../src/world/Machine.ts"
import { observed } from "../src/world/Observed.ts"
import { keyOf } from "../src/world/Parcel.ts"
import * as World from "../src/world/World.ts"

const models = { rabbitmq: RabbitMq, sqs: Sqs, nsq: Nsq }

/** When faults end, in milliseconds. */
const calmAt = 120_000

const keys = Array.from({ length: 12 }, (_, index) => index + 1)
const isOdd = (key: number): boolean => key % 2 === 1

/** A turn of the event loop, in which promises of the client continue. */
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Declares the queues, as a consumer does. */
const declare = ({ subscribe }: Pick<Broker.Service, "subscribe">) =>
  subscribe({
    queue: "work",
    retry: RetryPolicy.make(),
    deadLetterQueues: ["work.dlq"],
    onDelivery: () => {},
    onReconnect: () => {}
  })

const begin = async (kind: keyof typeof models, seed: number, rates: Partial<Rates>) => {
  const bare = { sendings: [], operations: [], processes: [], refusals: [], calmAt, focus: "operator" }
  const { fifo: _, rabbitmq: __, ...drawn } = Generate.scenario(seed, [kind])
  // No letter is returned so often that RabbitMQ moves it away.
  const versions = each(drawn, { maxDeliveries: 400 })
  const world = World.make({ ...drawn, ...bare, versions, rates: { ...calm, ...rates } })
  const model = models[kind].make(world)
  const machine = Machine.make(world, "operator", Machine.trueClock)
  const runOn =
    ({ run }: Machine.Machine) =>
    async <A, E>(effect: Effect.Effect<A, E>): Promise<A> => {
      let exit: Exit.Exit<A, E> | undefined
      run(effect).addObserver((each) => (exit = each))
      while (exit === undefined && world.step(1e9)) await turn()
      if (exit === undefined || Exit.isFailure(exit)) throw new Error(`it did not end well: ${JSON.stringify(exit)}`)
      return exit.value
    }
  const consumer = Machine.make(world, "a", Machine.trueClock)
  await runOn(consumer)(Effect.scoped(Effect.flatMap(model.client(consumer), declare)))
  for (const key of keys) {
    const parcel = { body: Buffer.from(`{"key":${key}}`), headers: {}, metadata: undefined }
    model.publish("work.dlq", parcel, () => {})
  }
  const run = runOn(machine)
  const client = await run(Scope.provide(model.client(machine), Scope.makeUnsafe()))
  return { world, service: observed(world, machine, client), run }
}

const browse = ({ admin }: Broker.Service, queue = "work.dlq") =>
  admin.browse({ queue, retry: RetryPolicy.make(), from: "ready", limit: 100 })

/** Asks for pages, however often that fails, and removes those with odd keys, until all were shown. */
const removeOdd = (service: Broker.Service) =>
  Effect.gen(function* () {
    const { next, remove } = yield* browse(service)
    let left: ReadonlyArray<Delivery.Delivery> = []
    for (let isOver = false; !isOver; ) {
      const page = yield* Effect.orElseSucceed(next(5), () => undefined)
      const odd = (page ?? []).map(({ delivery }) => delivery).filter((delivery) => isOdd(keyOf(delivery)))
      const failures = yield* remove([...left, ...odd])
      left = failures.flatMap(({ delivery, fate }) => (fate === "lost" ? [] : [delivery]))
      isOver = page?.length === 0 && left.length === 0
    }
  })

/** Does so again until the world has been calm for a while: what is lost on its way is hidden from a browser. */
const removeAllOdd = (service: Broker.Service, now: () => number) =>
  Effect.gen(function* () {
    while (now() < 2 * calmAt) {
      yield* Effect.ignore(Effect.scoped(removeOdd(service)))
      yield* Effect.sleep(5000)
    }
  })

describe.each(["rabbitmq", "sqs", "nsq"] as const)("a browser on the kind %s", (kind) => {
  it("ends when it holds nothing", async () => {
    const { run, service } = await begin(kind, 1, {})
    await run(Effect.scoped(Effect.flatMap(browse(service, "other.dlq"), ({ next }) => next(5))))
  })

  it.each([
    ["nothing", {}],
    ["connections that break", { cut: 0.1 }],
    ["answers that are lost, and brokers that are busy", { lostAnswer: 0.2, busy: 0.2, late: 0.1 }]
  ] as const)("removes what it is told to, and no other, beside %s", async (_, rates) => {
    for (let seed = 1; seed <= 10; seed++) {
      const { run, service, world } = await begin(kind, seed, rates)
      await run(removeAllOdd(service, world.now))
      // Leases end, and what was lost is noticed.
      await run(Effect.sleep(600_000))
      const gone = world.history.flatMap((entry) => (entry._tag === "Gone" ? [[entry.key, entry.why]] : []))
      const removed = keys.filter(isOdd).map((key) => [key, "settled"])
      assert.deepStrictEqual(
        gone.toSorted(([a], [b]) => Number(a) - Number(b)),
        removed,
        `seed ${seed}`
      )
      assert.deepStrictEqual(
        world.history.filter(({ _tag }) => _tag === "Defect"),
        [],
        `seed ${seed}`
      )
      const { delayed = 0, inFlight = 0, ready } = await run(service.admin.counts("work.dlq"))
      assert.deepStrictEqual([ready, inFlight, delayed], [6, 0, 0], `seed ${seed}`)
      const asked = world.history.flatMap((entry) => (entry._tag === "Asked" ? [entry.settlement.tag] : []))
      assert.isAtLeast(asked.filter((tag) => tag === "Ack").length, 6, `seed ${seed}`)
    }
  })
})
