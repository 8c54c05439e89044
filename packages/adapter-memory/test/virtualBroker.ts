/** A memory broker in virtual time, used through the promise face as a program without Effect would. */
import { Broker, type Delivery } from "@requeue/core"
import { VirtualClock } from "@requeue/core/port"
import { connect, type ConnectOptions, type Requeue } from "@requeue/core/promise"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { type Control, MemoryBroker, type Options } from "../src/index.ts"

export interface VirtualBroker extends AsyncDisposable {
  readonly requeue: Requeue
  /** The broker itself, without what is put between. */
  readonly broker: Broker.Service
  readonly control: Control.Control
  /** Milliseconds since the start. */
  readonly now: () => number
  /** Moves the clock, and stops at every moment on the way at which somebody wakes up. */
  readonly advance: (duration: Duration.Input) => Promise<void>
  /** Moves the clock until the promise has settled. */
  readonly finish: <A>(promise: Promise<A>) => Promise<A>
  /** The bodies that wait in a queue, as text. */
  readonly waiting: (queue: string) => Promise<ReadonlyArray<string>>
  /** The delayed JSON bodies of a queue and the milliseconds until they are due, soonest first. */
  readonly later: (queue: string) => Promise<ReadonlyArray<readonly [any, number]>>
}

const decoder = new TextDecoder()

export const text = ({ body }: Pick<Delivery.Delivery, "body">): string => decoder.decode(body)

/** Lets every fiber and promise go as far as it can without the clock. */
export const turns = async (count = 20): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resume) => setImmediate(resume))
}

/** Steps of the clock after which a promise is given up. */
const maxSteps = 1000

/** `wrap` puts something between the consumer and the broker. Nothing is logged unless a level or a logger is given. `more` are limits of sends, and a logger. */
export const open = async (
  options: Options.Options = {},
  wrap: (broker: Broker.Service) => Broker.Service = (broker) => broker,
  logLevel?: ConnectOptions["logLevel"],
  more: Pick<ConnectOptions, "publishTimeout" | "maxPending" | "logger"> = {}
): Promise<VirtualBroker> => {
  const scope = Scope.makeUnsafe()
  const testClock = await Effect.runPromise(Scope.provide(TestClock.make(), scope))
  const clock = VirtualClock.make(testClock, 0)
  const { broker, control } = await Effect.runPromise(
    MemoryBroker.makeControlled(options).pipe(Scope.provide(scope), Effect.provideService(Clock.Clock, clock))
  )
  const layer = Layer.merge(Layer.succeed(Broker.Broker, wrap(broker)), Layer.succeed(Clock.Clock, clock))
  const requeue = await connect(layer, {
    ...more,
    logLevel: logLevel ?? (more.logger === undefined ? "None" : undefined)
  })

  const moveTo = async (time: number): Promise<void> => {
    await Effect.runPromise(clock.setTime(time))
    await turns()
  }
  const advance: VirtualBroker["advance"] = async (duration) => {
    const end = clock.currentTimeMillisUnsafe() + Duration.toMillis(duration)
    await turns()
    for (let next = clock.next(); next !== undefined && next < end; next = clock.next()) await moveTo(next)
    await moveTo(end)
  }
  const finish: VirtualBroker["finish"] = async (promise) => {
    let settled = false
    const end = () => void (settled = true)
    promise.then(end, end)
    for (let step = 0; step < maxSteps; step++) {
      await turns()
      if (settled) return promise
      const next = clock.next()
      if (next !== undefined) await moveTo(next)
    }
    throw new Error("the promise waits for something that is no clock")
  }

  const snapshot = (queue: string) => Effect.runPromise(control.snapshot(queue))

  return {
    requeue,
    broker,
    control,
    now: () => clock.currentTimeMillisUnsafe(),
    advance,
    finish,
    waiting: async (queue) => (await snapshot(queue)).ready.map(text),
    later: async (queue) => (await snapshot(queue)).delayed.map((d) => [JSON.parse(text(d.delivery)), d.dueIn]),
    [Symbol.asyncDispose]: async () => {
      await finish(requeue.close())
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
}
