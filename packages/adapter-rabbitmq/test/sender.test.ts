import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import * as Result from "effect/Result"
import type { Declarer } from "../src/internal/declare/declare.ts"
import { type Publisher, Submission } from "../src/internal/publish/publisher.ts"
import * as Routes from "../src/internal/publish/routes.ts"
import * as Sender from "../src/internal/publish/sender.ts"
import * as Plan from "../src/RabbitMqPlan.ts"
import { RabbitMqNative } from "../src/index.ts"
import * as RabbitMqOptions from "../src/RabbitMqOptions.ts"
import { bytes } from "./world.ts"

const settings = () => Result.getOrThrow(RabbitMqOptions.decode())

const refused = (queue: string, reason: BrokerError.Reason) =>
  new BrokerError.BrokerError({ broker: "rabbitmq", operation: "publish", queue, reason, detail: "no" })

const item = (queue: string): Routes.Item => {
  const plan = Plan.make({ queue }, settings(), "4.3.6")
  if (plan instanceof Error) throw plan
  return {
    message: Outgoing.make({ queue, id: queue, body: bytes("x"), headers: {}, delay: 0 }, 0),
    plan,
    original: {}
  }
}

/**
 * Declares all but `locked`; what is sent to `full` is refused, and of `slow` nothing is ever heard. `outcomes` are those of `paused`.
 */
const start = (outcomes: ReadonlyArray<BrokerError.Reason> = []) => {
  let now = 0
  const declared = new Set<unknown>()
  const written: Array<string> = []
  const withdrawn: Array<string> = []
  const publisher: Publisher = {
    open: () => {},
    submit: (publication, onOutcome) => {
      const { queue } = publication
      written.push(queue)
      const isFirst = written.indexOf(queue) === written.length - 1
      if (queue === "full") onOutcome(refused(queue, "QueueFull"))
      else if (queue === "deleted") onOutcome(isFirst ? refused(queue, "QueueFull") : undefined)
      else if (queue === "beside") onOutcome(isFirst ? refused(queue, "ConnectionLost") : undefined, isFirst)
      else if (queue === "besides refused")
        onOutcome(refused(queue, isFirst ? "ConnectionLost" : "BodyTooLarge"), isFirst)
      else if (queue === "removed") onOutcome(isFirst ? refused(queue, "QueueMissing") : undefined)
      else if (queue === "paused") {
        const reason = outcomes[written.length - 1]
        onOutcome(reason && refused(queue, reason))
      } else if (queue !== "slow") onOutcome(undefined)
      return new Submission(publication, onOutcome, { late: () => {} })
    },
    withdraw: ({ publication }) => void withdrawn.push(publication.queue),
    unwritten: (queue) => refused(queue, "Throttled")
  }
  const declarer: Pick<Declarer, "knows" | "ensure" | "renew"> = {
    knows: (objects) => declared.has(objects),
    ensure: (objects, queue = "") =>
      queue === "broken"
        ? Effect.die(new Error("a defect"))
        : queue === "locked"
          ? Effect.fail(refused(queue, "AccessRefused"))
          : Effect.sync(() => void declared.add(objects)),
    renew: () => Effect.void
  }
  const elapsed = () => now
  const sender = Sender.make({
    routes: Routes.make({
      settings: settings(),
      maxBodySize: 100,
      serverVersion: () => "4.3.6",
      uniqueName: () => "copy",
      elapsed
    }),
    declarer,
    publisher,
    fork: (effect) => void Effect.runFork(effect),
    elapsed
  })
  return { sender, written, withdrawn, pass: (duration: number) => void (now += duration) }
}

const sendEach = Effect.fnUntraced(function* (sender: Sender.Sender, queues: ReadonlyArray<string>) {
  const confirmed: Array<string> = []
  const answers = yield* sender.sendEach(queues.map(item), (index) => confirmed.push(queues[index]!))
  return { confirmed: confirmed.toSorted(), answers: answers.map((error) => error?.reason) }
})

describe("what is sent each on its own account", () => {
  it.effect("fails alone when its queue cannot be declared, or does not take it", () =>
    Effect.gen(function* () {
      const { sender } = start()
      for (let round = 0; round < 2; round++) {
        const { answers, confirmed } = yield* sendEach(sender, ["a", "locked", "full", "b"])
        assert.deepStrictEqual(answers, [undefined, "AccessRefused", "QueueFull", undefined])
        assert.deepStrictEqual(confirmed, ["a", "b"])
      }
    })
  )

  it.effect("is sent again after another has closed its channel, or its exchange was removed", () =>
    Effect.gen(function* () {
      const { sender, written } = start()
      const { answers } = yield* sendEach(sender, ["beside", "removed"])
      assert.deepStrictEqual(answers, [undefined, undefined])
      assert.deepStrictEqual(written.toSorted(), ["beside", "beside", "removed", "removed"])
    })
  )

  it.effect("is sent again after a nack, once: its queue may have been deleted", () =>
    Effect.gen(function* () {
      const { sender, written } = start()
      const { answers } = yield* sendEach(sender, ["deleted", "full"])
      assert.deepStrictEqual(answers, [undefined, "QueueFull"])
      assert.deepStrictEqual(written, ["deleted", "full", "deleted", "full"])
    })
  )

  it.effect("may be stored though it is refused when it is sent again", () =>
    Effect.gen(function* () {
      const { sender, written } = start()
      const { answers } = yield* sendEach(sender, ["besides refused"])
      assert.deepStrictEqual([answers, written.length], [["ConnectionLost"], 2])
    })
  )

  it.effect("fails alone where something throws", () =>
    Effect.gen(function* () {
      const { sender } = start()
      const hostile = { ...item("a"), message: { ...item("a").message, body: undefined as never } }
      const answers = yield* sender.sendEach([item("broken"), hostile, item("b")])
      assert.deepStrictEqual(
        answers.map((error) => error?.reason),
        ["Unsupported", "Unsupported", undefined]
      )
    })
  )

  it.effect("is confirmed at once, whatever the others wait for, and withdrawn when nobody waits any more", () =>
    Effect.gen(function* () {
      const { sender, withdrawn, written } = start()
      const confirmed = new Set<number>()
      const fiber = yield* Effect.forkChild(
        sender.sendEach(["a", "slow", "b"].map(item), (index) => confirmed.add(index)),
        { startImmediately: true }
      )
      assert.deepStrictEqual([written.toSorted(), confirmed], [["a", "b", "slow"], new Set([0, 2])])
      yield* Fiber.interrupt(fiber)
      assert.include(withdrawn, "slow")
    })
  )
})

describe("a route that the server refused", () => {
  const reasonOf = (sender: Sender.Sender) =>
    Effect.map(sendEach(sender, ["paused"]), ({ answers: [reason] }) => reason)

  it.effect("pauses; then one message tries, and the others when it was accepted", () =>
    Effect.gen(function* () {
      const { pass, sender, written } = start(["AccessRefused", "AccessRefused"])
      assert.deepStrictEqual([yield* reasonOf(sender), yield* reasonOf(sender)], ["AccessRefused", "AccessRefused"])
      assert.strictEqual(written.length, 1)
      pass(100)
      assert.deepStrictEqual([yield* reasonOf(sender), yield* reasonOf(sender)], ["AccessRefused", "AccessRefused"])
      assert.strictEqual(written.length, 2)
      pass(150)
      assert.deepStrictEqual([yield* reasonOf(sender), yield* reasonOf(sender)], [undefined, undefined])
      assert.strictEqual(written.length, 4)
    })
  )

  it.effect("is tried by the next message if the one that tried failed for another reason", () =>
    Effect.gen(function* () {
      for (const own of ["BodyTooLarge", "ConnectionLost"] as const) {
        const { pass, sender, written } = start(["AccessRefused", own])
        assert.strictEqual(yield* reasonOf(sender), "AccessRefused")
        pass(100)
        assert.deepStrictEqual([yield* reasonOf(sender), yield* reasonOf(sender)], [own, undefined])
        assert.strictEqual(written.length, 3)
      }
    })
  )
})

describe("what is sent together", () => {
  it.effect("fails with the first error; nothing is written when one of it cannot be sent", () =>
    Effect.gen(function* () {
      const { sender, written } = start()
      const error = yield* Effect.flip(sender.send(["a", "full", "b"].map(item)))
      assert.deepStrictEqual([error.reason, written], ["QueueFull", ["a", "full", "b", "full"]])
      const copied = { ...item("b"), message: { ...item("b").message, headers: { CC: "c" } } }
      const unsupported = yield* Effect.flip(sender.send([item("a"), copied]))
      assert.deepStrictEqual([unsupported.reason, written.length], ["Unsupported", 4])
    })
  )
})

describe("delays with a queue each", () => {
  const delays = Result.getOrThrow(RabbitMqOptions.decode({ topology: "perDelayQueue" }))
  const plan = Plan.make({ queue: "q" }, delays, "4.3.6")
  if (plan instanceof Error) throw plan
  const delayed = (delay: number): Routes.Item => ({
    message: Outgoing.make({ queue: "q", id: String(delay), body: bytes("x"), headers: {}, delay }, 0),
    plan
  })

  /** A server on which a declaration takes a turn, `forbidden` cannot be declared, and a message needs its queue. */
  const serve = (forbidden?: string) => {
    const queues = new Set<string>()
    const declare: Declarer["ensure"] = (objects, queue = "") =>
      Effect.gen(function* () {
        yield* Effect.yieldNow
        for (const object of objects) {
          if (object._tag !== "Queue") continue
          if (object.name === forbidden) return yield* refused(queue, "AccessRefused")
          queues.add(object.name)
        }
      })
    const publisher: Publisher = {
      open: () => {},
      submit: (publication, onOutcome) => {
        const { queue, routingKey } = publication
        onOutcome(queues.has(routingKey) ? undefined : refused(queue, "Unroutable"))
        return new Submission(publication, onOutcome, { late: () => {} })
      },
      withdraw: () => {},
      unwritten: (queue) => refused(queue, "Throttled")
    }
    return Sender.make({
      routes: Routes.make({
        settings: delays,
        maxBodySize: 100,
        serverVersion: () => "4.3.6",
        uniqueName: () => "copy",
        elapsed: () => 0
      }),
      declarer: { knows: () => false, ensure: declare, renew: declare },
      publisher,
      fork: (effect) => void Effect.runFork(Effect.provideService(effect, References.MinimumLogLevel, "None")),
      elapsed: () => 0
    })
  }

  const reasons = (sender: Sender.Sender, items: ReadonlyArray<Routes.Item>) =>
    Effect.map(sender.sendEach(items), (answers) => answers.map((error) => error?.reason))

  it.live("wait for their own declarations, though all of them are sent by the default exchange", () =>
    Effect.gen(function* () {
      const answers = yield* reasons(serve(), [0, 5000, 7000, 9000].map(delayed))
      assert.deepStrictEqual(answers, [undefined, undefined, undefined, undefined])
    })
  )

  it.live("are refused alone", () =>
    Effect.gen(function* () {
      const sender = serve("q_dlq_5")
      assert.deepStrictEqual(yield* reasons(sender, [delayed(5000)]), ["AccessRefused"])
      const answers = yield* reasons(sender, [0, 5000, 7000].map(delayed))
      assert.deepStrictEqual(answers, [undefined, "AccessRefused", undefined])
    })
  )
})

describe("an answer to a requester without a queue", () => {
  it.effect("is published without mandatory before 4.3, which returns it though it arrives", () =>
    Effect.sync(() => {
      const native = RabbitMqNative.make({ exchange: "", routingKey: "amq.rabbitmq.reply-to.g1" })
      const sent = { ...item("answers"), original: undefined }
      const mandatory = (serverVersion: string, message: Partial<typeof sent.message>) => {
        const made = Routes.make({
          settings: settings(),
          maxBodySize: 100,
          serverVersion: () => serverVersion,
          uniqueName: () => "copy",
          elapsed: () => 0
        }).publication({ ...sent, message: { ...sent.message, ...message } }, 0)
        return "options" in made ? made.options["mandatory"] : made
      }
      const other = RabbitMqNative.make({ exchange: "", routingKey: "answers" })
      assert.deepStrictEqual(
        ["3.10.8", "3.13.7", "4.0.5", "4.3.6"].map((version) => mandatory(version, { native })),
        [false, false, false, true]
      )
      assert.isTrue(mandatory("3.10.8", { native: other }))
      assert.isTrue(mandatory("3.10.8", {}))
    })
  )
})
