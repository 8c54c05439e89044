/** Tests of queues that somebody else has made: their making, the books of a consumer, and users with few permissions. */
import type { Event, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import type { RabbitMqOptions } from "../../src/index.ts"
import { consume, no, raw, type Run } from "../deep/traps/trap.ts"
import { drainIds, on, until } from "../world.ts"

export type Arguments = Readonly<Record<string, unknown>>

/** Messages whose handler fails each time. */
const failing = ["a", "b", "c"]

/** Makes a queue that has three messages that will fail, and one that will not. */
export const make = (url: string, queue: string, args: Arguments) =>
  raw(url, async (channel) => {
    await channel.assertQueue(queue, { durable: true, arguments: args })
    for (const messageId of [...failing, "good"])
      channel.sendToQueue(queue, Buffer.from('"x"'), { persistent: true, messageId, priority: 3 })
  })

/** Consumes the messages of `make` until all have ended, and checks attempts and books; `url` looks into the queues. */
export const balance = async (
  url: string,
  queue: string,
  options: RabbitMqOptions.Options,
  [retry, attempts]: readonly [RetryPolicy.RetryPolicy, number]
): Promise<void> => {
  const runs: Array<Run> = []
  const ends = new Map<string, Event.Event["_tag"]>()
  const onEvent = (event: Event.Event) => {
    if (event._tag === "Succeeded" || event._tag === "DeadLettered" || event._tag === "Dropped")
      ends.set(event.id, event._tag)
  }
  await on({ url, ...options }, () =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { retry, onEvent }, ({ id }) => (failing.includes(id) ? no() : undefined))
      yield* until(
        () => `four ends, there were ${JSON.stringify([...ends])} after ${runs.length} runs`,
        () => ends.size === failing.length + 1
      )
    })
  )
  for (const id of failing) {
    const seen = runs.filter((run) => run.id === id).map((run) => run.attempts)
    const wanted = Array.from({ length: attempts }, (_, index) => index + 1)
    assert.deepStrictEqual(seen, wanted, `attempts of ${id}`)
  }
  assert.strictEqual(ends.get("good"), "Succeeded")
  assert.deepStrictEqual((await drainIds(url, `${queue}.dlq`)).toSorted(), failing)
  // A single active consumer's queue cannot be looked into.
  assert.strictEqual((await raw(url, (channel) => channel.checkQueue(queue))).messageCount, 0)
}

/** Writes something by the management interface. */
export const put = async (management: string, path: string, body: unknown): Promise<void> => {
  const base = new URL(management)
  const authorization = `Basic ${btoa(`${base.username}:${base.password}`)}`
  const response = await fetch(new URL(`/api/${path}`, base.origin), {
    method: "PUT",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  assert.isTrue(response.ok, `${path}: HTTP status ${response.status}`)
}

/** Makes a user who may read and write everything, and configure nothing; answers its options. */
export const readerAndWriter = async (management: string, username: string, tags = "") => {
  await put(management, `users/${username}`, { password: "s3cret", tags })
  await permit(management, username, "^$")
  return { username, password: "s3cret" }
}

/** Lets a user configure and write what these expressions name; default: write everything. It may read everything. */
export const permit = (management: string, username: string, configure: string, write = ".*") =>
  put(management, `permissions/%2F/${username}`, { configure, write, read: ".*" })

/** The management interface's answer. */
export const get = async (management: string, path: string): Promise<unknown> => {
  const base = new URL(management)
  const authorization = `Basic ${btoa(`${base.username}:${base.password}`)}`
  return (await fetch(new URL(`/api/${path}`, base.origin), { headers: { authorization } })).json()
}

/** Sets a policy of the server for one queue, and waits until it is told. */
export const policyOf = async (management: string, queue: string, definition: Arguments) => {
  await put(management, `policies/%2F/${queue}`, { pattern: `^${queue}$`, definition, "apply-to": "queues" })
  const isTold = async () => {
    const told = await get(management, `queues/%2F/${queue}`)
    const { effective_policy_definition: policy } = told as { readonly effective_policy_definition?: Arguments } // As RabbitMQ documents it.
    return Object.entries(definition).every(([name, value]) => policy?.[name] === value)
  }
  await Effect.runPromise(until("the policy", isTold))
}
