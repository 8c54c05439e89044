/** Whatever gives a message up, and whatever becomes of it then: there is a line for it, with all that is known. */
import { assert, it } from "@effect/vitest"
import { Codec, Consumer, type Event, Failure, Producer, QueueDefinition, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"

const handle = (body: string) => {
  if (body === "permanent") throw new Failure.PermanentError("no such card")
  if (body === "dropped") throw new Failure.DropError("a duplicate")
  throw new Error("closed")
}

const lines: Array<Readonly<Record<string, unknown>>> = []
const logger = Logger.make<unknown, void>(({ fiber, message }) => {
  if (!/^(dead-lettered|dropped) a message/.test(String(message))) return
  lines.push(fiber.getRef(References.CurrentLogAnnotations))
})

/** Who gives up, under which policy, and why. */
const policies = [
  {
    retry: RetryPolicy.make({ maxRetries: 1 }),
    bodies: ["closed", "permanent", "dropped", "{"],
    reasons: ["undecodable", "permanent", "dropped", "retries-exhausted"]
  },
  { retry: RetryPolicy.make({ maxAge: 500 }), bodies: ["closed"], reasons: ["too-old"] },
  {
    retry: RetryPolicy.make({ maxRetries: 0, deadLetter: "discard" }),
    bodies: ["closed", "{"],
    reasons: ["retries-exhausted", "undecodable"]
  }
]

it.effect.each(policies)("for $reasons", ({ bodies, reasons, retry }) => {
  lines.length = 0
  const events: Array<Event.Event> = []
  const given = () =>
    events.flatMap((event) => (event._tag === "DeadLettered" || event._tag === "Dropped" ? event : []))
  return Effect.gen(function* () {
    const raw = yield* Producer.make(QueueDefinition.make("orders", { codec: Codec.text }))
    for (const body of bodies) {
      yield* raw.send(body === "{" ? body : JSON.stringify(body), { headers: { "content-type": "application/json" } })
    }
    const options = { retry, retryDelay: "1 second", onEvent: (event: Event.Event) => void events.push(event) } as const
    yield* Consumer.start<string>("orders", options, ({ body }) => handle(body))
    yield* TestClock.adjust("10 seconds")
    assert.sameMembers(
      given().map(({ reason }) => reason),
      reasons
    )
    const known = given().map(({ attempts, error, id, queue, reason, ...event }, index) => ({
      broker: "memory",
      queue,
      consumer: 1,
      messageId: id,
      attempts,
      reason,
      errorName: error.name,
      errorMessage: error.message,
      ...(error.stack === undefined ? {} : { errorStack: error.stack }),
      ...(event._tag === "DeadLettered" ? { target: event.target } : {}),
      age: lines[index]?.["age"]
    }))
    assert.deepStrictEqual(lines, known)
    assert.isTrue(lines.every(({ age }) => typeof age === "string"))
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(MemoryBroker.layer(), Logger.layer([logger]))))
})
