/** Trials: what they refuse, and what they count. */
import { DropError } from "@requeue/core/promise"
import { BatchPolicy, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { setTimeout as real } from "node:timers/promises"
import { afterEach, describe, expect, it, vi } from "vitest"
import * as Trial from "../src/Trial.ts"

const good: Trial.Options = { kinds: ["rabbitmq"], seeds: 5, bodies: [{ order: 1 }], handler: () => () => {} }

const once = { ...good, consumer: { retry: RetryPolicy.make({ maxRetries: 0 }) } }

const refusalOf = async (change: object): Promise<string> => {
  try {
    await Trial.run({ ...good, ...change })
  } catch (error) {
    return String(error)
  }
  return "none"
}

describe("a trial refuses", () => {
  const prefix = "RangeError: Trial.run: "
  it.each<[object, string]>([
    [{ consumer: { concurrency: 0 } }, "consumer: concurrency must be a whole number from 1 to 1000, got 0"],
    [{ consumer: { concurency: 3 } }, "consumer: unknown option concurency. Did you mean concurrency?"],
    [{ consumer: { retryDelay: "48 hours" } }, "consumer: retryDelay must be"],
    [{ consumer: { retry: { maxRetries: 2 } } }, "consumer: retry must be a policy, made by RetryPolicy.make"],
    [{ consumer: "fast" }, "consumer must be an object"],
    [{ batch: 5 }, "batch must be a policy, made by BatchPolicy.make"],
    [{ handler: undefined }, "handler must be a function, got undefined"],
    [{ handler: "mine" }, 'handler must be a function, got "mine"'],
    [{ handler: () => "mine" }, 'the result of handler must be a function, got "mine"'],
    [{ seed: 3 }, "unknown option seed. Did you mean seeds?"],
    [{ seeds: 0 }, "seeds must be a whole number >= 1, got 0"],
    [{ seeds: 1.5 }, "seeds must be a whole number >= 1, got 1.5"],
    [{ seeds: "10" }, 'seeds must be a whole number >= 1, got "10"'],
    [{ from: -1 }, "from must be a whole number >= 0, got -1"],
    [{ from: Number.NaN }, "from must be a whole number >= 0, got NaN"],
    [{ from: Number.MAX_SAFE_INTEGER }, "from + seeds must be a safe integer"],
    [{ kinds: [] }, "kinds must name at least one kind, got none"],
    [{ kinds: ["pull"] }, 'kinds[0] must be one of "rabbitmq", "sqs", "nsq", "sqlite", got "pull"'],
    [{ kinds: ["rabbitmq", "rabbitmq"] }, "kinds must name each kind once, got rabbitmq, rabbitmq"],
    [{ bodies: [] }, "bodies must be 1 to 100, got 0"],
    [{ bodies: [1, 1n] }, "bodies[1] must be the same after JSON.stringify and JSON.parse, got 1n"],
    [{ bodies: [undefined] }, "bodies[0] must be the same after JSON.stringify and JSON.parse, got undefined"],
    [
      { bodies: [{ at: new Date() }] },
      "bodies[0] must be the same after JSON.stringify and JSON.parse, got an object. Replace dates"
    ]
  ])("%o", async (change, message) => {
    const refused = await refusalOf(change)
    expect(refused.slice(0, prefix.length + message.length)).toBe(prefix + message)
  })

  it("a factory that throws, with its error", async () => {
    const error = new Error("no database")
    const handler = (): never => {
      throw error
    }
    await expect(Trial.run({ ...good, handler })).rejects.toBe(error)
  })

  it("a consumer that the broker cannot have, with its error", async () => {
    const retry = RetryPolicy.make({ deadLetter: "work" })
    await expect(Trial.run({ ...good, consumer: { retry } })).rejects.toMatchObject({ _tag: "ConfigurationError" })
  })
})

describe("a handler", () => {
  it.each<[string, Trial.Options["handler"]]>([
    ["a timer of Node", () => () => real(5)],
    ["a promise that nobody settles", () => () => new Promise(() => {})],
    ["an Effect of a timer of Node", () => () => Effect.promise(() => real(5))],
    [
      "a timer of Node after a sleep",
      ({ sleep }) =>
        async () => {
          await sleep(10)
          await real(5)
        }
    ]
  ])("that waits for %s ends the trial", async (_, handler) => {
    await expect(Trial.run({ ...good, handler })).rejects.toThrow(/^Trial.run: the handler waits for something outside/)
  })

  it.each<[string, Trial.Options["handler"]]>([
    ["promises", () => async () => void (await Promise.all([Promise.resolve(), Promise.resolve().then(() => 1)]))],
    [
      "sleep",
      ({ sleep }) =>
        () =>
          sleep(500)
    ],
    ["an Effect's sleep", () => () => Effect.sleep(500)],
    [
      "a run that sleeps",
      ({ sleep }) => {
        let last: Promise<void> = Promise.resolve()
        return () => (last = last.then(() => sleep(100)))
      }
    ]
  ])("may wait for %s", async (_, handler) => {
    const bodies = [1, 2, 3]
    for (const { succeeded } of await Trial.run({ ...good, bodies, consumer: { concurrency: 3 }, handler, seeds: 5 })) {
      expect(succeeded.messages).toBe(15)
    }
  })

  it("may wait for ever", async () => {
    const [rabbitmq] = await Trial.run({
      ...once,
      handler:
        ({ sleep }) =>
        () =>
          sleep(Infinity)
    })
    expect(rabbitmq!.deadLettered.messages).toBe(rabbitmq!.sent)
  })

  it.each([undefined, Number.NaN, -1, "5"])("fails where it sleeps for %s", async (millis: any) => {
    // Wrong on purpose.
    const errors = new Set<string>()
    const handler: Trial.Options["handler"] =
      ({ sleep }) =>
      async () => {
        await sleep(millis).catch((error) => {
          errors.add(String(error).slice(0, 47))
          throw error
        })
      }
    const [rabbitmq] = await Trial.run({ ...once, handler })
    expect(rabbitmq!.deadLettered.messages).toBe(rabbitmq!.sent)
    expect([...errors]).toEqual(["RangeError: sleep: millis must be a number >= 0"])
  })
})

describe("a report", () => {
  const quiet = { ...good, seeds: 5 }
  const ends = async (handler: Trial.Options["handler"], consumer: Trial.Options["consumer"] = once.consumer) => {
    const [rabbitmq] = await Trial.run({ ...quiet, handler, consumer: consumer! })
    const { deadLettered, dropped, forgotten, succeeded, unfinished } = rabbitmq!
    return Object.entries({ deadLettered, dropped, forgotten, succeeded, unfinished }).flatMap(([name, { messages }]) =>
      messages === 0 ? [] : [name]
    )
  }
  const fails = (): never => {
    throw new Error("it failed")
  }

  it("counts a message that was acked as succeeded, whatever the handler does then", async () => {
    expect(await ends(() => (message) => (message.ack(), fails()))).toEqual(["succeeded"])
  })

  it("counts a message that was retried as failed, though the handler returns", async () => {
    expect(await ends(() => (message) => message.retry())).toEqual(["deadLettered"])
    const thrice = { retry: RetryPolicy.make({ maxRetries: 2 }) }
    const [rabbitmq] = await Trial.run({ ...quiet, consumer: thrice, handler: () => (message) => message.retry() })
    expect([rabbitmq!.repeated.messages, rabbitmq!.longest, rabbitmq!.mostRuns >= 3]).toEqual([0, 0, true])
  })

  it("counts a message that failed as such, though the handler returns", async () => {
    expect(await ends(() => (message) => message.fail(new DropError("worthless")))).toEqual(["dropped"])
  })

  it("does not count a call that is refused", async () => {
    const handler = () => (message: { retry: (options: { delay: string }) => void }) => {
      expect(() => message.retry({ delay: "48 hours" })).toThrow("delay")
    }
    expect(await ends(handler as Trial.Options["handler"])).toEqual(["succeeded"]) // Its delays are text.
  })

  it("does not count the end of a run whose time was over", async () => {
    const retry = RetryPolicy.make({ maxRetries: 0 })
    expect(
      await ends(
        ({ sleep }) =>
          () =>
            sleep(3000),
        { retry, handlerTimeout: "1 second" }
      )
    ).toEqual(["deadLettered"])
  })

  it("counts what was dropped and what is still queued at the end of the world apart", async () => {
    const discard = { retry: RetryPolicy.make({ maxRetries: 0, deadLetter: "discard" }) }
    expect(await ends(() => fails, discard)).toEqual(["dropped"])
    const long = { retry: RetryPolicy.make({ maxRetries: 100 }), retryDelay: "24 hours" } as const
    const [waiting] = await Trial.run({ ...quiet, seeds: 1, handler: () => fails, consumer: long })
    expect([waiting!.unfinished.messages, waiting!.deadLettered.messages]).toEqual([1, 0])
  })

  it("adds up, on every kind of broker", async () => {
    for (const { deadLettered, dropped, forgotten, succeeded, sent, unfinished } of await Trial.run({
      bodies: [1, 2, 3],
      seeds: 20,
      handler:
        () =>
        ({ attempts, body }) =>
          body === 2 && attempts < 9 ? fails() : undefined
    })) {
      const all = [deadLettered, dropped, forgotten, succeeded, unfinished].reduce(
        (sum, { messages }) => sum + messages,
        0
      )
      expect(all).toBeGreaterThanOrEqual(sent)
      expect(all).toBeLessThanOrEqual(180)
    }
  })

  it("counts each message of a batch by its own call", async () => {
    const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 100 })
    const handler: Trial.Options["handler"] = () => (message) => (message.body === 2 ? message.retry() : message.ack())
    const [rabbitmq] = await Trial.run({ ...once, bodies: [1, 2, 3], batch, from: 2, seeds: 5, handler })
    expect([rabbitmq!.succeeded.messages, rabbitmq!.deadLettered.messages]).toEqual([10, 5])
  })

  it("is the same for the same options", async () => {
    const options: Trial.Options = {
      bodies: [1, 2],
      seeds: 10,
      handler:
        ({ sleep }) =>
        () =>
          sleep(700)
    }
    expect(await Trial.run(options)).toEqual(await Trial.run(options))
  })
})

it("shows the world of a seed, with the program", async () => {
  const text = await Trial.show({ ...once, bodies: [1], handler: () => (message) => message.retry(), seed: 7 })
  expect(text).toMatch(
    /^seed 7, broker rabbitmq, faults until \d+\nversion 0: attempts 1, deliveries 11, dead letters to work\.dlq/
  )
  expect(text).toMatch(/calls #1\.retry\(\)[^]*stores #1\/\d+ in work\.dlq as retries-exhausted[^]*END: at rest$/)
  await expect(Trial.show({ ...good, seed: -1 })).rejects.toThrow(
    "Trial.show: seed must be a whole number >= 0, got -1"
  )
})

describe("fake timers", () => {
  afterEach(() => vi.useRealTimers())

  it("do not matter", async () => {
    vi.useFakeTimers()
    const [rabbitmq] = await Trial.run({
      ...good,
      handler:
        ({ sleep }) =>
        () =>
          sleep(200)
    })
    expect(rabbitmq!.succeeded.messages).toBe(rabbitmq!.sent)
  })
})
