/** Whatever user code throws, answers or leaves behind, the other messages are handled, and nothing is lost unseen. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it, vi } from "@effect/vitest"
import { type Broker, Codec, type QueueDefinition } from "@requeue/core"
import { Telemetry } from "@requeue/core/port"
import { connect, EncodeError, queue as define, type ConsumeOptions, type Event } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { MemoryBroker } from "../src/index.ts"
import { open, turns, type VirtualBroker } from "./virtualBroker.ts"

const throws = (): never => {
  throw new Error("a trap")
}

/** A value of which nothing can be asked. */
const untouchable = (): any =>
  new Proxy({}, { get: throws, has: throws, getPrototypeOf: throws, ownKeys: throws, getOwnPropertyDescriptor: throws })

const unprintable: any = Object.assign(Object.create(null), {
  toString: throws,
  toJSON: throws
})

class OddDate extends Date {
  readonly #time: unknown
  constructor(time: unknown) {
    super(0)
    this.#time = time
  }
  override getTime(): any {
    return this.#time
  }
}

class OddPromise extends Promise<unknown> {
  // oxlint-disable-next-line unicorn/no-thenable -- it is what is tried
  override then(): never {
    return throws()
  }
}

/** Rejects with a value that is no error. */
const rejecting = (reason: unknown): Promise<never> =>
  Promise.resolve().then(() => {
    throw reason // oxlint-disable-line typescript/only-throw-error -- handlers may
  })

const constructing = (): any => Object.defineProperty(Promise.resolve(1), "constructor", { get: throws })

const bodies = ["poison", ...Array.from({ length: 20 }, (_, n) => `good ${n}`)]

/** Runs the messages through a handler, with two more that come later; answers the bodies that were handled well. */
const handled = async (
  broker: VirtualBroker,
  options: ConsumeOptions,
  poison: () => unknown,
  queue: string | QueueDefinition.QueueDefinition<any> = "q"
): Promise<ReadonlyArray<string>> => {
  const done: Array<string> = []
  const { requeue } = broker
  await requeue.sendBatch(
    queue,
    bodies.map((body) => ({ body }))
  )
  await requeue.consume(queue, { retry: { maxRetries: 1 }, ...options }, ({ body }) =>
    body === "poison" ? poison() : void done.push(body)
  )
  await broker.advance("1 minute")
  await requeue.send(queue, "late")
  await broker.advance("1 minute")
  return done
}

const all = [...bodies.slice(1), "late"]

describe("a handler", () => {
  it.each<readonly [string, () => unknown]>([
    ["throws what cannot be touched", () => rejecting(untouchable())],
    ["throws what cannot be printed", () => rejecting(unprintable)],
    [
      "throws an error whose retryAfter is a Date that answers a BigInt",
      () => rejecting({ retryAfter: new OddDate(5n) })
    ],
    [
      "throws an error whose retryAfter is a Date that answers a symbol",
      () => rejecting({ retryAfter: new OddDate(Symbol("t")) })
    ],
    [
      "throws an error whose retryAfter is a Date that answers an object",
      () => rejecting({ retryAfter: new OddDate({ valueOf: throws }) })
    ],
    ["answers what cannot be touched", untouchable],
    ["answers a promise of what cannot be touched", () => Promise.resolve({}).then(() => untouchable() as never)],
    ["answers a promise that cannot be waited for", () => new OddPromise(() => {})],
    ["answers a promise whose constructor throws", constructing]
  ])("that %s costs no other message, with reruns and without", async (_, poison) => {
    await using rerunning = await open()
    assert.deepStrictEqual(await handled(rerunning, { retry: { maxRetries: 1, immediate: 1 } }, poison), all)
    await using broker = await open()
    assert.deepStrictEqual(await handled(broker, {}, poison), all)
    const letters = await deadLetters(broker.requeue, "q.dlq").count()
    assert.oneOf(letters, [0, 1])
    assert.deepStrictEqual(await broker.waiting("q"), [])
  })

  it("that answers a promise of an Effect has that Effect run, and its failure counted", async () => {
    await using broker = await open()
    let runs = 0
    const poison = async () =>
      Effect.andThen(
        Effect.sync(() => void runs++),
        Effect.fail("no")
      )
    assert.deepStrictEqual(await handled(broker, {}, poison), all)
    assert.strictEqual(runs, 2)
    assert.strictEqual(await deadLetters(broker.requeue, "q.dlq").count(), 1)
  })
})

describe("a hook", () => {
  it.each<readonly [string, (event: Event) => unknown]>([
    [
      "throws what cannot be touched",
      () => {
        throw untouchable()
      }
    ],
    [
      "throws what cannot be printed",
      () => {
        throw unprintable
      }
    ],
    ["rejects with what cannot be printed", () => rejecting(unprintable)],
    ["answers what cannot be touched", untouchable],
    ["answers a promise that cannot be waited for", () => new OddPromise(() => {})]
  ])("that %s costs no message", async (_, hook) => {
    await using broker = await open()
    const onEvent = (event: Event): any => hook(event)
    assert.deepStrictEqual(await handled(broker, { onEvent }, () => Promise.reject(new Error("no"))), all)
    assert.strictEqual(await deadLetters(broker.requeue, "q.dlq").count(), 1)
  })
})

describe("a codec", () => {
  it.each<readonly [string, () => unknown]>([
    [
      "throws what cannot be touched",
      () => {
        throw untouchable()
      }
    ],
    ["answers what cannot be touched", untouchable],
    ["answers a promise that cannot be waited for", () => new OddPromise(() => {})]
  ])("that %s costs no other message", async (_, decodePoison) => {
    await using broker = await open()
    const codec: Codec.Codec<any> = {
      ...Codec.text,
      decode: (bytes, headers) => {
        const body = Codec.text.decode(bytes, headers)
        return body === "poison" ? decodePoison() : body
      }
    }
    assert.deepStrictEqual(await handled(broker, {}, () => {}, define("q", { codec })), all)
  })
})

describe("a codec that never answers", () => {
  it("has a time limit: the attempt fails, is tried again, and ends among the dead letters", async () => {
    await using broker = await open()
    const codec: Codec.Codec<any> = {
      ...Codec.text,
      decode: (bytes, headers) => {
        const body = Codec.text.decode(bytes, headers)
        return body === "poison" ? new Promise(() => {}) : Promise.resolve(body)
      }
    }
    const events: Array<string> = []
    const onEvent = (event: Event): void => {
      if (event._tag === "AttemptFailed") events.push(event.error.name)
    }
    const queue = define("q", { codec })
    assert.deepStrictEqual(await handled(broker, { onEvent }, () => {}, queue), all)
    await broker.advance("2 minutes")
    assert.deepStrictEqual(events, ["DecodeTimeout", "DecodeTimeout"])
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.strictEqual(letter?.origin?.reason, "retries-exhausted")
    assert.deepStrictEqual(await broker.waiting("q"), [])
  })

  it("and answers after all is not heard", async () => {
    await using broker = await open()
    let answer = (): void => {}
    const runs: Array<number> = []
    const codec: Codec.Codec<any> = {
      ...Codec.text,
      decode: () => (runs.length === 0 ? new Promise((resolve) => (answer = () => resolve("late"))) : "in time")
    }
    await broker.requeue.send("q", "x")
    await broker.requeue.consume(define("q", { codec }), { retry: { maxRetries: 1 } }, ({ attempts, body }) => {
      runs.push(attempts)
      return body
    })
    await broker.advance("29 seconds")
    const first = answer
    await broker.advance("2 seconds")
    first()
    await turns()
    assert.deepStrictEqual(runs, [])
    answer()
    await turns()
    assert.deepStrictEqual(runs, [2])
  })
})

describe("telemetry", () => {
  const sound: Telemetry.Watch = {
    onEvent: () => {},
    run: () => Telemetry.unwatched,
    settle: (_, settle) => settle,
    close: () => {}
  }
  it.each<readonly [string, Partial<Telemetry.Watch>]>([
    ["events", { onEvent: throws }],
    ["runs", { run: throws }],
    ["what is around a handler", { run: () => ({ within: throws, end: () => {} }) }],
    ["runs, and does not call the handler", { run: () => ({ within: (() => {}) as never, end: () => {} }) }],
    ["the ends of runs", { run: () => ({ within: (handler) => handler(), end: throws }) }],
    ["settlements", { settle: throws }],
    ["nothing, but answers no Effect for settlements", { settle: (() => 5) as never }],
    ["its end", { close: throws }]
  ])("that throws at %s costs no message", async (_, watch) => {
    const done: Array<string> = []
    const telemetry: Telemetry.Service = {
      send: (_broker, messages, publish) => publish(messages),
      consumer: () => ({ ...sound, ...watch })
    }
    {
      await using requeue = await connect(MemoryBroker.layer(), { telemetry, logLevel: "None" })
      await requeue.sendBatch(
        "q",
        bodies.map((body) => ({ body }))
      )
      await requeue.consume("q", {}, ({ body }) => void done.push(body))
      for (let n = 0; n < 20 && done.length < bodies.length; n++) await turns()
    }
    assert.deepStrictEqual(done, bodies)
  })
})

describe("telemetry of sends", () => {
  it.each<readonly [string, () => unknown, RegExp]>([
    ["throws", throws, /telemetry\.send threw Error: a trap; .*not logged/],
    [
      "throws what cannot be printed",
      () => {
        throw unprintable
      },
      /telemetry\.send threw .*unprintable object/
    ],
    ["answers nothing", () => undefined, /telemetry\.send did not return an Effect/],
    ["answers what cannot be touched", untouchable, /telemetry\.send /],
    ["answers a promise", () => Promise.resolve(), /telemetry\.send did not return an Effect/]
  ])("that %s costs no message, and is told once", async (_, send, expected) => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      const telemetry = { send, consumer: () => undefined } as unknown as Telemetry.Service // It is a wrong one.
      await using requeue = await connect(MemoryBroker.layer(), { telemetry })
      await requeue.send("q", 1)
      await requeue.sendBatch("q", [{ body: 2 }, { body: 3 }])
      assert.strictEqual(await deadLetters(requeue, "q").count(), 3)
      assert.deepInclude(await deadLetters(requeue, "q").redrive({ to: "r", create: true, force: "q" }), {
        redriven: 3
      })
      // The producer and the redrive tell it once each.
      assert.strictEqual(errors.mock.calls.length, 2)
      for (const call of errors.mock.calls) assert.match(String(call), expected)
    } finally {
      errors.mockRestore()
    }
  })
})

describe("a send", () => {
  it("whose publish throws fails, and takes up no room", async () => {
    const room = 1000
    let calls = 0
    await using broker = await open({}, (service) => ({
      ...service,
      publish: (messages) => (++calls <= room ? throws() : service.publish(messages))
    }))
    const { requeue } = broker
    const sent = await Promise.allSettled(Array.from({ length: room }, () => requeue.send("q", "refused")))
    assert.isTrue(sent.every(({ status }) => status === "rejected"))
    await requeue.send("q", "taken")
    assert.lengthOf(await broker.waiting("q"), 1)
  })

  it("whose codec throws what cannot be printed fails with an EncodeError", async () => {
    await using broker = await open()
    const encode = (): never => {
      throw unprintable
    }
    const error: unknown = await broker.requeue
      .send(define("q", { codec: { ...Codec.text, encode } as Codec.Codec<any> }), "a")
      .catch((error: unknown) => error)
    assert.instanceOf(error, EncodeError)
  })
})

describe("an adapter", () => {
  it.each([
    [null],
    [undefined],
    [5],
    [[null]],
    [[{}]],
    [[{ delivery: {}, error: "no" }]],
    [[{ delivery: {}, error: { reason: "LeaseLost" } }]]
  ])("whose settle answers %j once is asked again", async (answer) => {
    let calls = 0
    await using broker = await open({}, (service) => ({
      ...service,
      subscribe: (options) =>
        Effect.map(service.subscribe(options), (subscription) => ({
          ...subscription,
          settle: (requests) => (++calls === 1 ? Effect.succeed(answer as never) : subscription.settle(requests))
        }))
    }))
    const done = await handled(broker, {}, () => {})
    assert.sameMembers([...new Set(done)], all)
    assert.deepStrictEqual(await broker.waiting("q"), [])
  })

  it.each(["settle", "extend", "credit"] as const)("whose %s throws twice is asked again", async (name) => {
    let calls = 0
    await using broker = await open({}, (service) => ({
      ...service,
      subscribe: (options) =>
        Effect.map(service.subscribe(options), (subscription) => ({
          ...subscription,
          [name]: (given: never) => {
            if (++calls <= 2) throw new Error("a defect of the adapter")
            return subscription[name](given)
          }
        }))
    }))
    const done = await handled(broker, {}, () => {})
    assert.sameMembers([...new Set(done)], all)
    assert.deepStrictEqual(await broker.waiting("q"), [])
  })
})

describe("a delivery that is gone", () => {
  /** The attempts that a handler sees which fails once, after the connection was cut. */
  const attempts = async (wrap?: (service: Broker.Service) => Broker.Service): Promise<ReadonlyArray<number>> => {
    await using broker = await open({}, wrap)
    const { requeue } = broker
    const runs: Array<number> = []
    let release = (): void => {}
    await requeue.send("q", "one")
    await requeue.consume("q", { retry: { maxRetries: 3, immediate: 3 }, concurrency: 1 }, async ({ attempts }) => {
      runs.push(attempts)
      if (runs.length > 1) return
      await new Promise<void>((resume) => (release = resume))
      throw new Error("no")
    })
    await turns()
    await Effect.runPromise(broker.control.cut)
    release()
    await broker.advance("1 minute")
    return runs
  }

  it("is not run again at once: its redelivery is", async () => {
    const unnamed = (service: Broker.Service): Broker.Service => ({
      ...service,
      subscribe: (options) =>
        Effect.map(service.subscribe(options), (given) => ({ ...given, identify: () => undefined }))
    })
    assert.deepStrictEqual(await attempts(unnamed), [1, 2])
  })

  it("and has come again meanwhile, is run again at once, in the same attempt", async () => {
    assert.deepStrictEqual(await attempts(), [1, 1])
  })
})

describe("a reconnection", () => {
  it("before the subscription is there tells nobody, and breaks nothing", async () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      const early = (service: Broker.Service): Broker.Service => ({
        ...service,
        subscribe: (options) => {
          options.onReconnect()
          return service.subscribe(options)
        }
      })
      await using broker = await open({}, early, "Warn")
      assert.deepStrictEqual(await handled(broker, {}, () => {}), all)
      assert.deepStrictEqual(errors.mock.calls, [])
    } finally {
      errors.mockRestore()
    }
  })
})
